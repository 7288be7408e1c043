//! When a file is worth a table of its rules.
//!
//! Not here: tables.

use plumb_unwind::Module;

/// How many addresses of a file were looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookups(u32);

impl Lookups {
    /// Its table was asked for.
    pub(super) const ASKED: Lookups = Lookups(u32::MAX);
    /// Fewer are not worth a table, however small.
    pub(super) const LEAST: u32 = 64;
    /// Reading a table that was kept takes as long as one look-up without a table for so many bytes of `.eh_frame`. So
    /// at the worst, if none follows, tables double what look-ups take.
    pub(super) const BYTES: usize = 2048;

    pub(super) fn one_more(self) -> Self {
        if self == Self::ASKED { self } else { Lookups((self.0 + 1).min(u32::MAX - 1)) }
    }

    pub(super) fn are_worth_a_table(self, module: &Module<Vec<u8>>) -> bool {
        let bytes = module.sections().eh_frame.as_ref().map_or(usize::MAX, |section| section.bytes.len());
        self != Self::ASKED && self.0 >= Self::LEAST && self.0 as usize >= bytes / Self::BYTES
    }
}
