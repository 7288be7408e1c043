//! How the walker reads the stack of what it unwinds: a live process, a copy of a part of its stack, or a test.
//!
//! Not here: any way to read memory. Callers bring their own.

use crate::address::Avma;

/// Memory of the process that is unwound.
pub trait Memory {
    /// The eight bytes at `at` in the byte order of the process. `at` need not be aligned.
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError>;

    /// The four bytes at `at` in the byte order of the process: words of 32-bit architectures, and instructions. Where
    /// `at` is aligned this touches no more than the eight aligned bytes around it.
    fn read_u32(&mut self, at: Avma) -> Result<u32, ReadError> {
        let shift = 8 * (at.0 % 8) as u32;
        let aligned = at.0 - at.0 % 8;
        let mut value = self.read_u64(Avma(aligned))? >> shift;
        if shift > 32 {
            value |= self.read_u64(Avma(aligned.wrapping_add(8)))? << (64 - shift);
        }
        Ok(value as u32)
    }
}

/// Why memory could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The address is above the end of what was copied of the stack: a larger copy would have had it.
    BeyondCopy,
    /// The address is not readable.
    Unreadable,
}

impl<M: Memory + ?Sized> Memory for &mut M {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        (**self).read_u64(at)
    }

    fn read_u32(&mut self, at: Avma) -> Result<u32, ReadError> {
        (**self).read_u32(at)
    }
}
