//! Access to the memory of a process.
//!
//! Elsewhere: its implementations.

use std::fmt;

/// Memory of a process.
///
/// `at` is any number: pointers come from memory that the process controls. An implementation checks arithmetic and returns false unless all of
/// `bytes` was filled. It is called many times for a stack, on the caller's thread; readers bound how often. The process may run meanwhile: readers
/// check what they read, so two reads need not agree.
///
/// Examples: `ProcessMemory`, `MemoryNow` and `CopiedMemory` in `plumb-ingest` (`memory.rs`); `Odd` in this crate's `tests/hostile.rs` is memory
/// that
/// means nothing.
pub trait Memory {
    /// Fills `bytes` from address `at`. Returns false if some of them cannot be read.
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool;

    /// Reads the 64-bit word at an address.
    fn word(&self, at: u64) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        if self.read(at, &mut bytes) { Ok(u64::from_le_bytes(bytes)) } else { Err(Unreadable(at)) }
    }
}

/// Reads `N` bytes from an address.
pub(crate) fn head<const N: usize>(memory: &dyn Memory, at: u64) -> Result<[u8; N], Unreadable> {
    let mut bytes = [0; N];
    if memory.read(at, &mut bytes) { Ok(bytes) } else { Err(Unreadable(at)) }
}

/// The 64-bit word at an offset in bytes that were read; 0 beyond their end.
pub(crate) fn word_in(bytes: &[u8], offset: u32) -> u64 {
    bytes.get(offset as usize..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

/// The memory at this address could not be read, or does not contain what is expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub u64);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the interpreter's memory at {:#x} can't be understood", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Part of a file that is mapped into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Start address of the mapping.
    pub start: u64,
    /// Offset in the file of `start`.
    pub offset: u64,
}
