//! What the agent costs the machine: processor time of its threads, and of its BPF programs in the time of whom they interrupt.
//!
//! Not counted: the kernel's way to a sample and back, which it accounts for nobody. Not here: what follows from the cost (`budget`).

use std::ops::AddAssign;

use plumb_capture_bpf::RunStats;
use plumb_process::Host;
use plumb_process::usage::{monotonic_ns, own_cpu_time};

/// What the agent cost in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnCost {
    /// Processor time of its threads, in nanoseconds.
    pub threads_ns: u64,
    /// Of its BPF programs; 0 where the kernel does not say.
    pub bpf_ns: u64,
    /// Length of the period.
    pub elapsed_ns: u64,
}

impl AddAssign for OwnCost {
    fn add_assign(&mut self, other: Self) {
        self.threads_ns += other.threads_ns;
        self.bpf_ns += other.bpf_ns;
        self.elapsed_ns += other.elapsed_ns;
    }
}

/// Measures it.
#[derive(Debug)]
pub struct CostMeter {
    stats: RunStats,
    cpus: usize,
    before: OwnCost,
}

impl CostMeter {
    /// Asks the kernel to account for BPF programs, which takes rights that an agent gives up: before
    /// [`drop_capabilities`](crate::drop_capabilities).
    pub fn open() -> Self {
        let mut meter = Self {
            stats: RunStats::enable(),
            cpus: Host::read().cpus.len().max(1),
            before: OwnCost::default(),
        };
        meter.before = meter.so_far();
        meter
    }

    /// Since the last time.
    pub(crate) fn take(&mut self) -> OwnCost {
        let (before, now) = (self.before, self.so_far());
        self.before = now;
        OwnCost {
            threads_ns: now.threads_ns.saturating_sub(before.threads_ns),
            // Programs that are gone take their account with them.
            bpf_ns: now.bpf_ns.saturating_sub(before.bpf_ns),
            elapsed_ns: now.elapsed_ns.saturating_sub(before.elapsed_ns),
        }
    }

    /// As a share of the machine, 1 for all of its processors.
    pub(crate) fn share(&self, cost: OwnCost) -> f64 {
        (cost.threads_ns + cost.bpf_ns) as f64 / (cost.elapsed_ns.max(1) as f64 * self.cpus as f64)
    }

    /// Whether the kernel says how long BPF programs ran.
    pub(crate) fn sees_programs(&self) -> bool {
        self.stats.own_run_time().is_some()
    }

    fn so_far(&self) -> OwnCost {
        let bpf = self.stats.own_run_time().unwrap_or_default();
        OwnCost {
            threads_ns: own_cpu_time().total_ns(),
            bpf_ns: u64::try_from(bpf.as_nanos()).unwrap_or(u64::MAX),
            elapsed_ns: monotonic_ns(),
        }
    }
}
