//! Functions at an address of a file, including inlined ones. Elsewhere: the files themselves (`symbols`).

use std::collections::HashMap;
use std::sync::Arc;

/// A function at an address: either an out-of-line function or one inlined into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedCall {
    /// Demangled name.
    pub function: String,
    /// Mangled name, if it differs.
    pub system_name: String,
    /// Source file; empty if unknown.
    pub file: String,
    /// Line in the source file; 0 if unknown.
    pub line: u32,
    /// First line of the function; 0 if unknown.
    pub start_line: u32,
    /// Whether the compiler inlined it into its caller.
    pub inlined: bool,
}

/// An address in a file to resolve to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileAddress {
    /// The address: within the instruction, also for a frame that called another.
    pub address: u64,
    /// Whether the address is a byte offset in the file, rather than one stated by the file's headers.
    pub is_file_offset: bool,
}

/// Resolved calls by frame of a dictionary.
pub(crate) type FrameNames = HashMap<u32, Arc<[ResolvedCall]>>;

/// Whether a text is a build id: up to 64 bytes in hexadecimal digits.
pub(crate) fn is_build_id(text: &str) -> bool {
    (4..=128).contains(&text.len()) && text.bytes().all(|one| one.is_ascii_hexdigit())
}
