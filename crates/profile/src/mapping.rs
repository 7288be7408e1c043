//! Where the files of a profile lay in its processes, so that an address can be shown as the process saw it.
//!
//! Only mappings that some sample's frame falls into are kept.

use crate::dso::DsoId;
use crate::process::ProcessId;

/// A stretch of a process' address space that a file was mapped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The process.
    pub process: ProcessId,
    /// The file.
    pub dso: DsoId,
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// What to add (wrapping) to an address of the file to get the address at run time.
    pub bias: u64,
}
