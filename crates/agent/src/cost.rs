//! What the agent costs the machine: processor time of its threads, and of its BPF programs in the time of whom they interrupt.
//!
//! The kernel's account of BPF programs slows those of everybody: the agent has it kept for its first minute, and from then on takes its programs
//! to have the same part of what its threads take. Programs at system calls, which are there for seconds, are no part of that: what they cost is
//! told ([`CostMeter::add_watch`]). Where programs run as threads are switched their part changes with that: the account is kept for good then.
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
    /// By which system calls of the machine took longer while those of a service were watched, or all were summed up.
    pub watch_ns: u64,
    /// Length of the period.
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

/// So long after its start an agent makes tables, which its programs have no part in.
const WARM_NS: u64 = 20_000_000_000;
/// So long the kernel accounts for programs.
const MEASURED_NS: u64 = 60_000_000_000;

/// Measures it.
#[derive(Debug)]
pub struct CostMeter {
    stats: RunStats,
    cpus: usize,
    opened_ns: u64,
    before: OwnCost,
    /// What was spent when the start was over.
    warm: Option<OwnCost>,
    /// What programs take for each nanosecond of the threads, once that is known.
    ratio: Option<f64>,
    /// Told so far.
    watch_ns: u64,
    /// The account is kept for good.
    is_kept: bool,
}

impl CostMeter {
    /// Asks the kernel to account for BPF programs, which takes rights that an agent gives up: before
    /// [`drop_capabilities`](crate::drop_capabilities). `off_cpu`: time off the processor is going to be measured.
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

    /// Since the last time.
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

    /// Asks for the account no more once it is known what programs take beside threads.
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

    /// System calls took so much longer as they were watched or summed up.
    pub(crate) fn add_watch(&mut self, watch_ns: u64) {
        self.watch_ns += watch_ns;
    }

    /// As a share of the machine, 1 for all of its processors.
    pub(crate) fn share(&self, cost: OwnCost) -> f64 {
        (cost.threads_ns + cost.bpf_ns + cost.watch_ns) as f64
            / self.machine_ns(cost.elapsed_ns.max(1)) as f64
    }

    /// The time that all processors together have in some time.
    pub(crate) fn machine_ns(&self, elapsed_ns: u64) -> u64 {
        elapsed_ns.saturating_mul(self.cpus as u64)
    }

    /// Whether the kernel says how long BPF programs run, or did.
    pub(crate) fn sees_programs(&self) -> bool {
        self.ratio.is_some() || self.stats.is_kept()
    }

    fn so_far(&mut self) -> OwnCost {
        let bpf = self.stats.own_run_time().unwrap_or_default();
        OwnCost {
            threads_ns: own_cpu_time().total_ns(),
            // Those that watch are among them, if somebody was watched in the first minute.
            bpf_ns: u64::try_from(bpf.as_nanos()).unwrap_or(u64::MAX),
            watch_ns: self.watch_ns,
            elapsed_ns: monotonic_ns(),
        }
    }
}

/// What was spent in between.
fn between(before: OwnCost, now: OwnCost) -> OwnCost {
    OwnCost {
        threads_ns: now.threads_ns.saturating_sub(before.threads_ns),
        // Programs that are gone take their account with them.
        bpf_ns: now.bpf_ns.saturating_sub(before.bpf_ns),
        watch_ns: now.watch_ns.saturating_sub(before.watch_ns),
        elapsed_ns: now.elapsed_ns.saturating_sub(before.elapsed_ns),
    }
}
