//! What a file says of an address in it: functions, of which the compiler put some into others. Not here: whose files there are (`symbols`).

use std::collections::HashMap;
use std::sync::Arc;

/// A function at an address: the one that the compiler made code of, or one that it put into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedCall {
    /// The readable name.
    pub function: String,
    /// The mangled name, if that is another.
    pub system_name: String,
    /// The source file; empty if it isn't known.
    pub file: String,
    /// The line in it; 0 if it isn't known.
    pub line: u32,
    /// The line where the function begins; 0 if it isn't known.
    pub start_line: u32,
    /// The compiler put it into its caller.
    pub inlined: bool,
}

/// An address of a file that a function is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileAddress {
    /// The address: inside the instruction, also of a frame that called another.
    pub address: u64,
    /// It is a byte offset in the file, and not an address as the file's headers state them.
    pub is_file_offset: bool,
}

/// By frame of a dictionary the calls that it really is.
pub(crate) type FrameNames = HashMap<u32, Arc<[ResolvedCall]>>;

/// Whether a text is a build id: up to 64 bytes in hexadecimal digits.
pub(crate) fn is_build_id(text: &str) -> bool {
    (4..=128).contains(&text.len()) && text.bytes().all(|one| one.is_ascii_hexdigit())
}
