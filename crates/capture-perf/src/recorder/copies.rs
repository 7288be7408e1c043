//! The size of stack copies during a recording: when to enlarge them, and when not to judge yet.
//!
//! Elsewhere: how many truncated stacks are too many (`stack_copy`).

use plumb_ingest::Statistics;

use crate::stack_copy::StackCopySizer;

/// The size of stack copies, with the state that decides on it.
pub(super) struct StackCopies {
    sizer: StackCopySizer,
    /// Number of requested tables at the last two checks.
    wants: [u64; 2],
}

impl StackCopies {
    /// Starts with the size that `sizer` has.
    pub fn new(sizer: StackCopySizer) -> Self {
        Self { sizer, wants: [0; 2] }
    }

    /// The new size in bytes, if it has to change. `wants`: number of tables requested so far. Stacks that are copied only until their table is
    /// loaded do not justify larger copies, so nothing changes while tables are being requested.
    pub fn wanted(&mut self, statistics: &Statistics, wants: u64) -> Option<u32> {
        if self.wants != [wants; 2] {
            self.wants = [self.wants[1], wants];
            self.grown(self.sizer.bytes(), statistics);
            return None;
        }
        self.sizer.wanted(statistics.samples, statistics.beyond_copy)
    }

    /// Notes that copies have `bytes` from now on: the counts so far belong to smaller ones.
    pub fn grown(&mut self, bytes: u32, statistics: &Statistics) {
        self.sizer.grown(bytes, statistics.samples, statistics.beyond_copy);
    }

    /// Never enlarges them again.
    pub fn stay(&mut self) {
        self.sizer = StackCopySizer::new(self.sizer.bytes(), self.sizer.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_grow_once_tables_are_no_longer_requested() {
        let mut copies = StackCopies::new(StackCopySizer::new(16 << 10, u32::MAX));
        let cut = |cut| Statistics { samples: cut, beyond_copy: cut, ..Statistics::default() };
        assert_eq!(copies.wanted(&cut(100), 1), None, "a table was requested");
        assert_eq!(copies.wanted(&cut(200), 1), None, "it may have just been loaded");
        assert_eq!(copies.wanted(&cut(300), 1), Some(32 << 10));
        copies.stay();
        assert_eq!(copies.wanted(&cut(400), 1), None, "larger ones can't be had");
    }
}
