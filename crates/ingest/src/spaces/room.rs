//! How much unwind information there may be, and how much there is.
//!
//! Not here: which of it is forgotten.

use std::cell::Cell;

/// How much unwind information there may be.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes that may stay.
    pub(super) most: usize,
    /// Bytes that there are, as far as was counted.
    pub(super) loaded: Cell<usize>,
    /// Bytes that were forgotten while they were in use.
    pub(super) early: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { most: usize::MAX, loaded: Cell::default(), early: 0 }
    }
}

impl Room {
    /// There is so many times what may stay: what is in use does not stay either.
    const MUCH: usize = 2;
    /// What may be forgotten while it is in use at that, in the same unit: it is read again, which takes a millisecond for some MiB.
    pub(super) const EARLY: usize = 8;
    /// A look at all files counts for so little of it.
    pub(super) const LOOK: usize = 64;

    pub(super) fn is_short(&self) -> bool {
        self.loaded.get() > self.most.saturating_mul(Self::MUCH)
            && self.early < self.most.saturating_mul(Self::EARLY)
    }

    pub(super) fn add(&self, bytes: usize) {
        self.loaded.set(self.loaded.get().saturating_add(bytes));
    }
}
