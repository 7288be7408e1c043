//! The [`Memory`] trait, by which the walker reads a stack: of a live process, from a partial copy, or in a test.
//!
//! Implementations are elsewhere: callers bring their own.

use crate::address::Avma;

/// Memory of the process being unwound.
///
/// Only [`read_u64`](Self::read_u64) is required.
///
/// - **Addresses are untrusted**: any number comes, unaligned and near the end of the address space. Check arithmetic, and answer with an error.
/// - **Failure is an answer**: a [`ReadError`] says why a word cannot be had (beyond the end of a copy, or not readable). The walk ends there, and
///   the
///   stack shows the reason. Never return a made-up word: a wrong frame is worse than a missing one.
/// - **Consistency**: the same address gives the same word during a walk, or frames may be wrong. Stop the thread, or take a copy.
/// - **Cost**: methods are called on the walk's thread, up to several times a frame, and should not allocate. Memory that is at hand as words offers
///   them
///   by [`window`](Self::window), which makes most frames a few instructions.
/// - **No bounds of its own**: the walker limits frames, words and code that it reads.
///
/// Examples: `NoStack` at the top of this crate is the smallest; `StackCopy` in `plumb-ingest` (`stacks/copy.rs`) is a partial copy with a window;
/// `StackCopy` in `plumb-snapshot` (`copy.rs`) belongs to a stopped thread.
pub trait Memory {
    /// Reads the eight bytes at `at` in the byte order of the process. `at` need not be aligned.
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError>;

    /// Reads the four bytes at `at` in the byte order of the process: words of 32-bit architectures, and
    /// instructions. If `at` is aligned, this touches only the eight aligned bytes around it.
    fn read_u32(&mut self, at: Avma) -> Result<u32, ReadError> {
        let shift = 8 * (at.0 % 8) as u32;
        let aligned = at.0 - at.0 % 8;
        let mut value = self.read_u64(Avma(aligned))? >> shift;
        if shift > 32 {
            value |= self.read_u64(Avma(aligned.wrapping_add(8)))? << (64 - shift);
        }
        Ok(value as u32)
    }

    /// Copies machine code from `at` on; returns `false` unless all of `to` was filled. The instructions ahead of a
    /// first frame without rules show where its return address is. If code is not available, the walker falls back to
    /// conventions.
    #[inline]
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        let _ = (at, to);
        false
    }

    /// Returns the part of the memory that is available as words; the same part on each call. Walks within it take a
    /// few instructions per frame. The words must equal what [`Memory::read_u64`] returns there.
    #[inline]
    fn window(&self) -> Option<Window<'_>> {
        None
    }
}

/// Consecutive words of memory in the byte order of the process. Copies of stacks are bytes;
/// `bytemuck::try_cast_slice` converts them to words if they are aligned.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Address of the first word.
    pub base: Avma,
    /// The words.
    pub words: &'a [u64],
}

impl Window<'_> {
    /// Returns the index of the word at an address; for the address just above the last word, the number of words.
    /// `None` if the address is unaligned or outside of the window.
    #[inline]
    pub fn index(&self, at: Avma) -> Option<usize> {
        let distance = at.0.wrapping_sub(self.base.0);
        let index = distance / 8;
        (distance.is_multiple_of(8) && index <= self.words.len() as u64).then_some(index as usize)
    }
}

/// Reason why memory could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The address is above the copied part of the stack: a larger copy would have included it.
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
