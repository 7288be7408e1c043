//! The limit for unwind information, and its current size.
//!
//! Elsewhere: the choice of what is dropped.

use std::cell::Cell;

/// The limit for unwind information, and its current size.
#[derive(Debug)]
pub(super) struct Room {
    /// Most bytes that are kept.
    pub(super) most: usize,
    /// Bytes loaded, as far as counted.
    pub(super) loaded: Cell<usize>,
    /// Bytes dropped while they were in use.
    pub(super) early: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { most: usize::MAX, loaded: Cell::default(), early: 0 }
    }
}

impl Room {
    /// Beyond this multiple of the limit, information in use is dropped too.
    const MUCH: usize = 2;
    /// Limit for dropping information in use, as the same multiple: it is read again, which takes a millisecond per some MiB.
    pub(super) const EARLY: usize = 8;
    /// A search of all files uses 1/64 of that limit.
    pub(super) const LOOK: usize = 64;

    pub(super) fn is_short(&self) -> bool {
        self.loaded.get() > self.most.saturating_mul(Self::MUCH)
            && self.early < self.most.saturating_mul(Self::EARLY)
    }

    pub(super) fn add(&self, bytes: usize) {
        self.loaded.set(self.loaded.get().saturating_add(bytes));
    }
}
