//! How many samples are where.
//!
//! Invariant: `taken` = `left_out` + `sent` + `spooled` + `dropped`, and what of the spool an earlier agent left is in none of them but
//! `found`, which is then part of the sum on the left.

use std::ops::{AddAssign, SubAssign};
use std::sync::{Mutex, PoisonError};

/// Samples, what they stand for, and the time off the processor beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Samples of processor time and of page faults.
    pub samples: u64,
    /// Nanoseconds of processor time.
    pub cpu_ns: u64,
    /// Nanoseconds that threads were off the processor, blocked or waiting for one, where that is measured.
    pub off_cpu_ns: u64,
    /// Page faults that samples stand for, where they are sampled.
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

/// How many samples are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Taken by this agent.
    pub taken: SampleCount,
    /// Found in the spool when this agent began.
    pub found: SampleCount,
    /// Left out by rules.
    pub left_out: SampleCount,
    /// Taken by the server.
    pub sent: SampleCount,
    /// Waiting in the spool.
    pub spooled: SampleCount,
    /// Given up: the spool was full or could not be written, or the server refused them.
    pub dropped: SampleCount,
    /// Samples that the kernel lost: they are in none of the others.
    pub lost: u64,
    /// Nanoseconds off the processor that found no room in the kernel: likewise.
    pub lost_off_cpu_ns: u64,
}

/// Totals that several threads add to.
#[derive(Debug, Default)]
pub(crate) struct SharedTotals(Mutex<Totals>);

impl SharedTotals {
    /// Changes them.
    pub fn change(&self, change: impl FnOnce(&mut Totals)) {
        // Sums are right after each change, whoever panicked elsewhere.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// As of now.
    pub fn read(&self) -> Totals {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
