//! Where the return addresses of one stack are.

use alloc::vec::Vec;

use crate::frame::Walked;

/// Frames that the loop finds in a row. A piece of memory for slots that has less room left counts as full.
pub(super) const UNROLLED: usize = 8;

/// The frames of one stack, four bytes each: for those who walk more often than they look at frames.
#[derive(Debug, Default)]
pub struct ReturnSlots {
    /// Where the return addresses of callers are, innermost first: in words from the window's base. [`ReturnSlots::OTHER`]
    /// for frames that are listed whole.
    pub(super) slots: Vec<[u32; UNROLLED]>,
    pub(super) used: usize,
    /// Position among the callers, and the frame.
    pub(super) others: Vec<(usize, Walked)>,
    pub(super) limit: usize,
}

impl ReturnSlots {
    /// What stands for a frame that is no return address in the window.
    pub const OTHER: u32 = u32::MAX;

    /// Room for so many callers; a walk that finds more ends there. Nothing is allocated afterwards, except where
    /// there are frames that are no return addresses in the window: these are listed whole.
    pub fn new(limit: usize) -> ReturnSlots {
        let slots = alloc::vec![[0; UNROLLED]; limit / UNROLLED + 2];
        ReturnSlots { slots, used: 0, others: Vec::with_capacity(8), limit }
    }

    /// The callers of the frame that the walk began with, innermost first: the positions of their return addresses,
    /// in words from the window's base, or [`ReturnSlots::OTHER`].
    pub fn slots(&self) -> &[u32] {
        self.slots.as_flattened().get(..self.used).unwrap_or_default()
    }

    /// The frames that are [`ReturnSlots::OTHER`] in [`ReturnSlots::slots`], with their positions there.
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
