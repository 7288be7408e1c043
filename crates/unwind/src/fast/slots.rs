//! Locations of the return addresses of one stack.

use alloc::vec::Vec;

use crate::frame::Walked;

/// Number of frames that the loop finds in a row. A buffer with less room than this counts as full.
pub(super) const UNROLLED: usize = 8;

/// The frames of one stack in four bytes each, for callers that walk more often than they look at frames.
#[derive(Debug, Default)]
pub struct ReturnSlots {
    /// Indexes of the callers' return addresses in the window, in words, innermost first. [`ReturnSlots::OTHER`] for
    /// frames that are in `others`.
    pub(super) slots: Vec<[u32; UNROLLED]>,
    pub(super) used: usize,
    /// Frames that are not in the window, each with its index among the callers.
    pub(super) others: Vec<(usize, Walked)>,
    pub(super) limit: usize,
}

impl ReturnSlots {
    /// Marks a frame that is not a return address in the window.
    pub const OTHER: u32 = u32::MAX;

    /// Allocates room for `limit` callers; a walk that finds more ends there. Later walks allocate only for frames
    /// that are not return addresses in the window, which are stored in full.
    pub fn new(limit: usize) -> ReturnSlots {
        let slots = alloc::vec![[0; UNROLLED]; limit / UNROLLED + 2];
        ReturnSlots { slots, used: 0, others: Vec::with_capacity(8), limit }
    }

    /// Returns the callers of the first frame, innermost first: indexes of their return addresses in the window, in
    /// words, or [`ReturnSlots::OTHER`].
    pub fn slots(&self) -> &[u32] {
        self.slots.as_flattened().get(..self.used).unwrap_or_default()
    }

    /// Returns the frames that are [`ReturnSlots::OTHER`] in [`ReturnSlots::slots`], with their indexes there.
    pub fn others(&self) -> &[(usize, Walked)] {
        &self.others
    }

    pub(super) fn put_other(&mut self, frame: Walked) {
        if let Some(slot) = self.slots.as_flattened_mut().get_mut(self.used) {
            *slot = ReturnSlots::OTHER;
            self.others.push((self.used, frame));
            self.used += 1;
        }
    }
}
