//! Properties that must hold for arbitrary bytes. The fuzz targets in `fuzz/unwind` call these functions.
//! `tests/smoke.rs` calls them too, with mutated sections of real files, for machines without a fuzzer.

#![allow(dead_code, reason = "each user takes what it needs")]

pub mod aarch64;
pub mod cfi;
pub mod exidx;
pub mod frames;
pub mod program;
pub mod scan;
pub mod sframe;
pub mod table;
pub mod table_bytes;

use std::cell::Cell;

use plumb_unwind::{Avma, CodeMap, Located, Memory, Module, ReadError, Window};

/// Maximum number of frames in a walk.
pub const LIMIT: usize = 100;
/// Address of stacks.
pub const STACK: u64 = 0x7ffd_0000_0000;

/// A process in which addresses below 2^32 are a module's code, without bias.
pub struct Process<'a>(pub Module<&'a [u8]>);

impl<'a> CodeMap for Process<'a> {
    type Bytes = &'a [u8];

    fn locate(&self, pc: Avma) -> Located<'_, &'a [u8]> {
        match pc.0 >> 32 {
            0 => Located::Module { module: &self.0, bias: 0 },
            1 => Located::NoInfo,
            2 => Located::Unreadable,
            _ => Located::Unmapped,
        }
    }
}

/// Copied words, at [`STACK`] by default. Counts the reads.
pub struct Words<'a> {
    pub base: u64,
    pub words: &'a [u64],
    pub reads: Cell<usize>,
    /// Whether the words are available as a window.
    pub is_window: bool,
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [u64]) -> Words<'a> {
        Words { base: STACK, words, reads: Cell::new(0), is_window: false }
    }

    /// Creates words that are available as a window.
    pub fn at_hand(words: &'a [u64]) -> Words<'a> {
        Words { is_window: true, ..Words::new(words) }
    }

    pub fn end(&self) -> u64 {
        self.base + 8 * self.words.len() as u64
    }
}

impl Memory for Words<'_> {
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        self.reads.set(self.reads.get() + 1);
        let offset = at.0.checked_sub(self.base).ok_or(ReadError::Unreadable)?;
        let (index, shift) = ((offset / 8) as usize, 8 * (offset % 8) as u32);
        let word = |index: usize| self.words.get(index).copied().ok_or(ReadError::BeyondCopy);
        match shift {
            0 => word(index),
            _ => Ok(word(index)? >> shift | word(index + 1)? << (64 - shift)),
        }
    }

    /// Fills the buffer with prologues and returns in an endless period.
    fn read_code(&mut self, at: Avma, to: &mut [u8]) -> bool {
        const CODE: [u8; 13] = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xc3, 0x5d, 0x48, 0x8b, 0xec];
        // Reads may begin before the first address.
        for (index, byte) in to.iter_mut().enumerate() {
            *byte = CODE[(at.0.wrapping_add(index as u64) % 13) as usize];
        }
        true
    }

    fn window(&self) -> Option<Window<'_>> {
        self.is_window.then_some(Window { base: Avma(self.base), words: self.words })
    }
}

/// Takes numbers from the front of a byte string; zeros once it is used up.
pub struct Source<'a>(pub &'a [u8]);

impl<'a> Source<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    pub fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }
}
