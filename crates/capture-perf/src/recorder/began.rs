//! The state of the machine and of the recorder when a recording began.

use std::time::{Duration, SystemTime};

use plumb_process::procfs::MachineTimes;
use plumb_process::throttle::Throttle;
use plumb_process::usage::{CpuTime, monotonic_ns, nanoseconds, own_cpu_time};

use super::coverage::CoverageCounters;

/// State at the start of a recording.
pub(super) struct Began {
    pub monotonic_ns: u64,
    pub unix_ns: u64,
    own: CpuTime,
    /// Time of all CPUs that no thread ran.
    machine: MachineTimes,
    /// The throttling cgroups of the target's first process.
    throttle: Option<Throttle>,
}

impl Began {
    /// The state now, for a target with these processes. `own`: the recorder's CPU time when it started to prepare the recording.
    pub fn now(own: CpuTime, pids: &[u32]) -> Self {
        Began {
            monotonic_ns: monotonic_ns(),
            unix_ns: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanoseconds),
            own,
            machine: MachineTimes::now(),
            throttle: pids.first().and_then(|&pid| Throttle::of(pid)),
        }
    }

    /// Moves the start to now, for a target with these processes: the time before was preparation.
    pub fn again(&mut self, pids: &[u32]) {
        *self = Self::now(self.own, pids);
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.monotonic_ns))
    }

    /// CPU time that the recorder has used, with its preparation.
    pub fn own_cpu(&self) -> CpuTime {
        own_cpu_time().since(self.own)
    }

    /// Time that the hypervisor has taken from the machine, in nanoseconds.
    pub fn stolen_ns(&self) -> u64 {
        nanoseconds(MachineTimes::now().since(self.machine).stolen)
    }

    /// Time for which the target was throttled, in nanoseconds; `None`: nothing limits it.
    pub fn throttled_ns(&self) -> Option<u64> {
        self.throttle.as_ref().map(|throttle| nanoseconds(throttle.since()))
    }

    /// The counters of coverage at the start.
    pub fn counters(&self) -> CoverageCounters {
        CoverageCounters {
            time_ns: self.monotonic_ns,
            samples: Some(0),
            target_cpu: Some(CpuTime::default()),
            machine: self.machine,
            ..CoverageCounters::default()
        }
    }
}
