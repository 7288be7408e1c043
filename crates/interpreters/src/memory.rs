//! Memory of a process, as it is read.
//!
//! Not here: how.

use std::fmt;

/// Memory of a process.
pub trait Memory {
    /// Reads all of `bytes` from an address on. False if some of them can't be read.
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool;

    /// The word at an address.
    fn word(&self, at: u64) -> Result<u64, Unreadable> {
        let mut bytes = [0; 8];
        if self.read(at, &mut bytes) { Ok(u64::from_le_bytes(bytes)) } else { Err(Unreadable(at)) }
    }
}

/// So many bytes from an address on.
pub(crate) fn head<const N: usize>(memory: &dyn Memory, at: u64) -> Result<[u8; N], Unreadable> {
    let mut bytes = [0; N];
    if memory.read(at, &mut bytes) { Ok(bytes) } else { Err(Unreadable(at)) }
}

/// The word at an offset of bytes that were read; 0 where there is none.
pub(crate) fn word_in(bytes: &[u8], offset: u32) -> u64 {
    bytes.get(offset as usize..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

/// Memory at this address could not be read, or does not hold what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable(pub u64);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the interpreter's memory at {:#x} can't be understood", self.0)
    }
}

impl std::error::Error for Unreadable {}

/// A part of a file in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Its first address.
    pub start: u64,
    /// Where in the file that is.
    pub offset: u64,
}
