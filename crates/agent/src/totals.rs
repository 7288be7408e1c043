//! Counts of samples by what became of them.
//!
//! Invariant: `taken` + `found` = `left_out` + `sent` + `spooled` + `dropped`, where `found` are the samples that an earlier agent left in the
//! spool.

use std::ops::{AddAssign, SubAssign};
use std::sync::{Mutex, PoisonError};

use plumb_capture_perf::Trigger;
use plumb_profile::{Event, EventId, Profile};

/// A quantity that samples represent. In the order of their places in a spooled request's name, which only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// CPU time, in nanoseconds.
    CpuTime,
    /// Time that threads were off-CPU, blocked or waiting for a CPU, in nanoseconds.
    OffCpu,
    /// Page faults.
    PageFaults,
}

impl Quantity {
    /// Number of quantities.
    pub(crate) const COUNT: usize = 3;

    /// The quantity that samples of an event weigh.
    pub(crate) fn of_event(profile: &Profile, event: EventId) -> Self {
        match profile.strings.get(profile.events[event].name) {
            name if Event::WAITS.contains(&name) => Self::OffCpu,
            Trigger::PAGE_FAULTS => Self::PageFaults,
            _ => Self::CpuTime,
        }
    }

    /// Whether its samples are counted. Times off the CPU are all measured instead of sampled.
    fn has_samples(self) -> bool {
        self != Self::OffCpu
    }
}

/// A number of samples, and the quantities that they represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCount {
    /// Samples of CPU time and of page faults.
    pub samples: u64,
    /// Weight of these and of measured times, by [`Quantity`].
    pub(crate) weights: [u64; Quantity::COUNT],
}

impl SampleCount {
    /// Samples of one quantity, with their weight.
    pub(crate) fn of(quantity: Quantity, samples: u64, weight: u64) -> Self {
        let mut count = Self { samples: if quantity.has_samples() { samples } else { 0 }, ..Self::default() };
        count.weights[quantity as usize] = weight;
        count
    }

    /// Sum of a quantity.
    pub fn weight(&self, quantity: Quantity) -> u64 {
        self.weights[quantity as usize]
    }
}

impl AddAssign for SampleCount {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.weights.iter_mut().zip(other.weights).for_each(|(sum, weight)| *sum += weight);
    }
}

impl SubAssign for SampleCount {
    fn sub_assign(&mut self, other: Self) {
        self.samples = self.samples.saturating_sub(other.samples);
        let weights = self.weights.iter_mut().zip(other.weights);
        weights.for_each(|(rest, weight)| *rest = rest.saturating_sub(weight));
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
