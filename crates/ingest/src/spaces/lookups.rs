//! Decides when a file is worth an unwind table.
//!
//! Elsewhere: tables.

use plumb_unwind::Module;

/// Number of addresses looked up in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lookups(u32);

impl Lookups {
    /// Value once its table was requested.
    pub(super) const ASKED: Lookups = Lookups(u32::MAX);
    /// Smallest number worth a table, however small.
    pub(super) const LEAST: u32 = 64;
    /// Bytes of `.eh_frame` for which loading a cached table costs as much as one look-up without it. If no look-up follows, tables at most double
    /// the cost.
    pub(super) const BYTES: usize = 2048;

    pub(super) fn one_more(self) -> Self {
        if self == Self::ASKED { self } else { Lookups((self.0 + 1).min(u32::MAX - 1)) }
    }

    pub(super) fn are_worth_a_table(self, module: &Module<Vec<u8>>) -> bool {
        let bytes = module.sections().eh_frame.as_ref().map_or(usize::MAX, |section| section.bytes.len());
        self != Self::ASKED && self.0 >= Self::LEAST && self.0 as usize >= bytes / Self::BYTES
    }
}
