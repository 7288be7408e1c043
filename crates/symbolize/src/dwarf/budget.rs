//! A bound on the work that one file may cause.
//!
//! DWARF can refer to one list from many places, so a small hostile file could keep a reader busy for years.
//! Every loop pays here for what it reads; when the budget is spent, the file's remaining frames get no lines.

use std::cell::Cell;

/// The number of steps left.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

/// Number of entries, ranges and line rows that may be read per file: some ten seconds of work. LLVM's own library with full debug
/// information has 100 million line rows in all.
const STEPS: u64 = 1 << 30;

/// Cost of keeping a range, in steps.
const KEPT: u64 = 256;

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(STEPS))
    }
}

impl Budget {
    /// Pays for `steps` steps; returns false if not enough are left.
    pub fn pay(&self, steps: u64) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left >= steps
    }

    /// Pays for `ranges` ranges that are kept, which takes memory too: a whole budget of them takes some 200 MB.
    pub fn pay_for_kept(&self, ranges: usize) -> bool {
        self.pay((ranges as u64).saturating_mul(KEPT))
    }

    /// Whether the budget is spent.
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}
