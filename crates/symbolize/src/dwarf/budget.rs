//! A bound on the work that one file may cause.
//!
//! DWARF can refer to one list from many places, so that a small hostile file could keep a reader busy for years.
//! Whatever is read in a loop is paid for here, and when the purse is empty the file's remaining frames get no lines.

use std::cell::Cell;

/// Steps that are left.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

/// Entries, ranges and line rows that one file may cost: some ten seconds of work. LLVM's own library with full debug
/// information has 100 million line rows in all.
const STEPS: u64 = 1 << 30;

/// Steps that it costs to keep a range.
const KEPT: u64 = 256;

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(STEPS))
    }
}

impl Budget {
    /// Pays for `steps` steps; false if they can't be afforded.
    pub fn pay(&self, steps: u64) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left >= steps
    }

    /// Pays for `ranges` ranges that are kept, which takes memory too: all that can be paid for take some 200 MB.
    pub fn pay_for_kept(&self, ranges: usize) -> bool {
        self.pay((ranges as u64).saturating_mul(KEPT))
    }

    /// Whether all is spent.
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}
