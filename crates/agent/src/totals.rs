//! Counts of samples by what became of them.
//!
//! Invariant: `taken` + `found` = `left_out` + `sent` + `spooled` + `dropped`, where `found` are the samples that an earlier agent left in the
//! spool.

use std::ops::{AddAssign, SubAssign};
use std::sync::{Mutex, PoisonError};

/// A number of samples, and the quantities that they represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Samples of CPU time and of page faults.
    pub samples: u64,
    /// Nanoseconds of CPU time.
    pub cpu_ns: u64,
    /// Nanoseconds that threads were off-CPU, blocked or waiting for a CPU, if that is measured.
    pub off_cpu_ns: u64,
    /// Page faults that the samples represent, if they are sampled.
    pub page_faults: u64,
}

impl AddAssign for SampleCount {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.cpu_ns += other.cpu_ns;
        self.off_cpu_ns += other.off_cpu_ns;
        self.page_faults += other.page_faults;
    }
}

impl SubAssign for SampleCount {
    fn sub_assign(&mut self, other: Self) {
        self.samples = self.samples.saturating_sub(other.samples);
        self.cpu_ns = self.cpu_ns.saturating_sub(other.cpu_ns);
        self.off_cpu_ns = self.off_cpu_ns.saturating_sub(other.off_cpu_ns);
        self.page_faults = self.page_faults.saturating_sub(other.page_faults);
    }
}

/// Counts of samples by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sampled by this agent.
    pub taken: SampleCount,
    /// Found in the spool when this agent started.
    pub found: SampleCount,
    /// Excluded by rules.
    pub left_out: SampleCount,
    /// Accepted by the server.
    pub sent: SampleCount,
    /// Waiting in the spool.
    pub spooled: SampleCount,
    /// Dropped: the spool was full or could not be written, or the server rejected them.
    pub dropped: SampleCount,
    /// Samples that the kernel lost. They are in none of the other counts.
    pub lost: u64,
    /// Off-CPU nanoseconds that found no room in the kernel. They are in none of the other counts.
    pub lost_off_cpu_ns: u64,
}

/// Totals that several threads update.
#[derive(Debug, Default)]
pub(crate) struct SharedTotals(Mutex<Totals>);

impl SharedTotals {
    /// Updates the totals.
    pub fn change(&self, change: impl FnOnce(&mut Totals)) {
        // The sums are consistent after each update, even if a thread panicked elsewhere.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Current totals.
    pub fn read(&self) -> Totals {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
