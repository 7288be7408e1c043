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

    /// Copies machine code from `at` on; false unless all of `to` could be filled. What the code of a first frame without
    /// rules is about to do tells where its return address is. Where code is not at hand conventions have to do.
    #[inline]
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let _ = (at, to);
        false
    }

    /// A part of the memory that is at hand as words, the same each time. Walks over what is in it take a few
    /// instructions a frame. The words must be what [`Memory::read_u64`] yields there.
    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        None
    }
}

/// Words of memory in a row, as the process has them. Copies of stacks are bytes: `bytemuck::try_cast_slice` makes words
/// of them where they are aligned.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Address of the first word.
    pub base: Avma,
    /// The words.
    pub words: &'a [u64],
}

impl Window<'_> {
    /// The index of the word at an address; as many as there are words just above the last one. `None` if it is
    /// elsewhere or within a word.
    #[inline]
    pub fn index(&self, at: Avma) -> Option<usize> {
        let distance = at.0.wrapping_sub(self.base.0);
        let index = distance / 8;
        (distance.is_multiple_of(8) && index <= self.words.len() as u64).then_some(index as usize)
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

    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        (**self).read_code(at, to)
    }

    fn window(&self) -> Option<Window<'_>> {
        (**self).window()
    }
}
