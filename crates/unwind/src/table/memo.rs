//! Functions with the same instructions have the same rows, but for where they begin and how long the last one is: what
//! was found of some is kept for others. Half of a file's functions are such.
//!
//! Invariant: rows are those that running the instructions would give. What is forgotten is run again.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::quick::WINDOW;

/// Instructions of fewer bytes are run as fast as they are found again.
const SHORTEST: usize = 8;
/// The most that are remembered at a time, a power of two.
const MOST: usize = 1 << 16;

/// The rows of functions that are kept: where each begins, and its rule.
#[derive(Debug)]
pub(super) struct Memo {
    /// By hash of the instructions.
    entries: Box<[Entry]>,
    rows: Vec<(u32, u64)>,
    /// Entries of other generations are forgotten.
    generation: u32,
    /// The function at hand: its first row in `rows`, where it begins, and its last row.
    from: usize,
    start: u64,
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    generation: u32,
    /// Where in the section the instructions are.
    code: u32,
    length: u32,
    /// Which rows, in `rows`; without the last.
    from: u32,
    to: u32,
    last: Last,
}

/// The last row of a function, from its beginning on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    /// Where it begins.
    pub(super) start: u32,
    /// How far instructions led: that has to be in the function.
    pub(super) reached: u32,
    pub(super) rule: u64,
}

/// Where a function's rows are or may be kept.
#[derive(Clone, Copy)]
pub(super) struct Place(usize);

impl Memo {
    /// For a file with so many functions.
    pub(super) fn new(functions: usize) -> Self {
        let size = (functions / 2).next_power_of_two().clamp(1, MOST);
        let none = Last { start: 0, reached: 0, rule: 0 };
        let entry = Entry { generation: 0, code: 0, length: 0, from: 0, to: 0, last: none };
        Memo {
            entries: vec![entry; size].into_boxed_slice(),
            rows: Vec::new(),
            generation: 1,
            from: 0,
            start: 0,
            last: None,
        }
    }

    /// Forgets all: the functions that come are of another CIE. (After 2^32 times of that the first come again, which is
    /// more than there are functions in 4 GiB.)
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.generation = self.generation.wrapping_add(1);
    }

    /// Where the rows of these instructions of `section` would be; `None` for what is not worth it. `code` has a window more
    /// than the instructions, here as in all that follows.
    #[inline(always)]
    pub(super) fn place(&self, code: &[u8]) -> Option<Place> {
        let own = code.len().checked_sub(WINDOW).filter(|&own| own >= SHORTEST)?;
        let mut hash = own as u64;
        let mut rest = code;
        while rest.len() > 16 {
            let Some((bytes, after)) = rest.split_first_chunk() else { break };
            hash = mix(hash, u64::from_le_bytes(*bytes));
            rest = after;
        }
        // The last eight bytes, of which some may be in it already.
        let last = code.get(own - 8..).and_then(<[u8]>::first_chunk)?;
        hash = mix(hash, u64::from_le_bytes(*last));
        Some(Place((hash >> 32) as usize & (self.entries.len() - 1)))
    }

    /// The rows for the instructions at that place, and the last one, if they are known and lead no further than `size`.
    #[inline(always)]
    pub(super) fn get(
        &self,
        Place(place): Place,
        section: &[u8],
        code: &[u8],
        size: u64,
    ) -> Option<(&[(u32, u64)], Last)> {
        let (entry, own) = (self.entries.get(place)?, code.len().checked_sub(WINDOW)?);
        let there = entry.code as usize;
        let is_known = entry.length as usize == code.len()
            && entry.generation == self.generation
            && size > entry.last.reached.into();
        if !is_known || section.get(there..there + own)? != code.get(..own)? {
            return None;
        }
        Some((self.rows.get(entry.from as usize..entry.to as usize)?, entry.last))
    }

    /// Remembers what is noted from here on, of the function that begins there.
    #[inline(always)]
    pub(super) fn begin(&mut self, start: u64) {
        (self.from, self.start, self.last) = (self.rows.len(), start, None);
    }

    /// A row of the function, but not the last one.
    #[inline(always)]
    pub(super) fn note(&mut self, start: u64, rule: u64) {
        self.rows.push(((start - self.start) as u32, rule));
    }

    /// The last one, how far instructions led, and its rule.
    #[inline(always)]
    pub(super) fn note_last(&mut self, start: u64, reached: u64, rule: u64) {
        let from = |at: u64| u32::try_from(at - self.start).ok();
        // All others begin before it; a function of more than 4 GiB is not remembered.
        self.last = from(start).zip(from(reached)).map(|(start, reached)| Last { start, reached, rule });
    }

    /// Keeps what was noted at that place, if it is all.
    #[inline(always)]
    pub(super) fn end(&mut self, place: Option<Place>, code: Range<usize>) {
        if self.put(place, code).is_none() {
            self.rows.truncate(self.from);
        }
    }

    #[inline(always)]
    fn put(&mut self, place: Option<Place>, code: Range<usize>) -> Option<()> {
        // What is less than another number fits as that does.
        u32::try_from(code.end).ok()?;
        let to = u32::try_from(self.rows.len()).ok()?;
        let (from, at, length) = (self.from as u32, code.start as u32, code.len() as u32);
        let entry = Entry { generation: self.generation, code: at, length, from, to, last: self.last? };
        *self.entries.get_mut(place?.0)? = entry;
        Some(())
    }
}

#[inline(always)]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
