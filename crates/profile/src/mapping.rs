//! The mappings of a profile's files in its processes, with which an address is shown as the process saw it.
//!
//! Only mappings that contain a sampled frame are kept.

use crate::dso::DsoId;
use crate::process::ProcessId;

/// An address range of a process in which a file was mapped.
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
    /// Value to add (wrapping) to an address of the file to get the address at run time.
    pub bias: u64,
}
