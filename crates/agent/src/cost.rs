//! The agent's cost to the machine: CPU time of its threads and of its BPF programs, which run in the time of the threads they interrupt.
//!
//! The kernel's statistics on BPF run time slow down every BPF program on the machine. The agent enables them for its first minute only, and then
//! assumes that its programs keep the same ratio to its threads. Short-lived programs at system calls are not part of that ratio: their cost is
//! reported through [`CostMeter::add_watch`]. If programs run at context switches, the ratio changes with the switch rate, so the statistics stay
//! enabled.
//!
//! Not counted: the kernel's path into and out of a sample, which it charges to nobody. Elsewhere: the reaction to the cost (`budget`).

use std::ops::AddAssign;

use plumb_capture_bpf::RunStats;
use plumb_process::Host;
use plumb_process::usage::{monotonic_ns, own_cpu_time};

/// The agent's cost in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnCost {
    /// CPU time of its threads, in nanoseconds.
    pub threads_ns: u64,
    /// CPU time of its BPF programs, in nanoseconds; 0 if the kernel does not report it.
    pub bpf_ns: u64,
    /// Nanoseconds by which the machine's system calls took longer because those of a service were traced or all were counted.
    pub watch_ns: u64,
    /// Length of the period, in nanoseconds.
    pub elapsed_ns: u64,
}

impl AddAssign for OwnCost {
    fn add_assign(&mut self, other: Self) {
        self.threads_ns += other.threads_ns;
        self.bpf_ns += other.bpf_ns;
        self.watch_ns += other.watch_ns;
        self.elapsed_ns += other.elapsed_ns;
    }
}

/// Start-up time, in which the threads build tables and the programs take no part. It does not count for the ratio.
const WARM_NS: u64 = 20_000_000_000;
/// Duration for which the kernel's statistics on BPF run time stay enabled.
const MEASURED_NS: u64 = 60_000_000_000;

/// Measures the agent's own cost.
#[derive(Debug)]
pub struct CostMeter {
    stats: RunStats,
    cpus: usize,
    opened_ns: u64,
    before: OwnCost,
    /// Cost up to the end of start-up.
    warm: Option<OwnCost>,
    /// BPF run time per nanosecond of thread time, once it is known.
    ratio: Option<f64>,
    /// Tracing overhead reported so far.
    watch_ns: u64,
    /// The statistics stay enabled.
    is_kept: bool,
}

impl CostMeter {
    /// Enables the kernel's statistics on BPF run time. This requires capabilities that the agent gives up, so call it before
    /// [`drop_capabilities`](crate::drop_capabilities). `off_cpu`: off-CPU time will be measured.
    pub fn open(off_cpu: bool) -> Self {
        let mut meter = Self {
            stats: RunStats::enable(),
            cpus: Host::read().cpus.len().max(1),
            opened_ns: monotonic_ns(),
            before: OwnCost::default(),
            warm: None,
            ratio: None,
            watch_ns: 0,
            is_kept: off_cpu,
        };
        meter.before = meter.so_far();
        meter
    }

    /// Returns the cost since the last call.
    pub(crate) fn take(&mut self) -> OwnCost {
        let (before, now) = (self.before, self.so_far());
        self.before = now;
        let mut cost = between(before, now);
        if let Some(ratio) = self.ratio {
            cost.bpf_ns = (cost.threads_ns as f64 * ratio) as u64;
        } else if self.sees_programs() {
            self.learn(now);
        }
        cost
    }

    /// Determines the ratio of BPF run time to thread time, and disables the statistics once it is known.
    fn learn(&mut self, now: OwnCost) {
        let age_ns = now.elapsed_ns.saturating_sub(self.opened_ns);
        if self.is_kept || age_ns < WARM_NS {
            return;
        }
        let since = between(*self.warm.get_or_insert(now), now);
        if age_ns >= MEASURED_NS && since.threads_ns > 0 && !self.stats.release() {
            self.ratio = Some(since.bpf_ns as f64 / since.threads_ns as f64);
        }
    }

    /// Adds `watch_ns` by which traced or counted system calls took longer.
    pub(crate) fn add_watch(&mut self, watch_ns: u64) {
        self.watch_ns += watch_ns;
    }

    /// `cost` as a share of the machine, 1 for all of its CPUs.
    pub(crate) fn share(&self, cost: OwnCost) -> f64 {
        (cost.threads_ns + cost.bpf_ns + cost.watch_ns) as f64
            / self.machine_ns(cost.elapsed_ns.max(1)) as f64
    }

    /// Time that all CPUs together have in `elapsed_ns`.
    pub(crate) fn machine_ns(&self, elapsed_ns: u64) -> u64 {
        elapsed_ns.saturating_mul(self.cpus as u64)
    }

    /// Whether the kernel reports the run time of BPF programs, or did.
    pub(crate) fn sees_programs(&self) -> bool {
        self.ratio.is_some() || self.stats.is_kept()
    }

    fn so_far(&mut self) -> OwnCost {
        let bpf = self.stats.own_run_time().unwrap_or_default();
        OwnCost {
            threads_ns: own_cpu_time().total_ns(),
            // Includes tracing programs if a service was traced in the first minute.
            bpf_ns: u64::try_from(bpf.as_nanos()).unwrap_or(u64::MAX),
            watch_ns: self.watch_ns,
            elapsed_ns: monotonic_ns(),
        }
    }
}

/// Difference of two readings.
fn between(before: OwnCost, now: OwnCost) -> OwnCost {
    OwnCost {
        threads_ns: now.threads_ns.saturating_sub(before.threads_ns),
        // A program that was unloaded takes its statistics with it.
        bpf_ns: now.bpf_ns.saturating_sub(before.bpf_ns),
        watch_ns: now.watch_ns.saturating_sub(before.watch_ns),
        elapsed_ns: now.elapsed_ns.saturating_sub(before.elapsed_ns),
    }
}
