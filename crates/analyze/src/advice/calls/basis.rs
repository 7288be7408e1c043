//! What verdicts on calls rest on: how long was looked, what processor time was used by what, and what things cost here.

use std::collections::HashMap;

/// What things cost on this machine, in nanoseconds of processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A system call that does nothing.
    pub call: f64,
    /// Reading a byte from a file that is in memory, beyond the call.
    pub byte: f64,
    /// A page fault on anonymous memory.
    pub fault: f64,
    /// Opening and closing a file.
    pub open: f64,
}

/// What is known beside the calls.
#[derive(Clone, Debug)]
pub struct Basis {
    /// How long was looked, in nanoseconds.
    pub span_ns: f64,
    /// Processor time that was used meanwhile, in nanoseconds.
    pub cpu_ns: f64,
    /// That of each call by its name, and of page faults as `page-fault`: sampled. Empty if it wasn't.
    pub cpu_of: HashMap<String, f64>,
    /// That of each thread.
    pub cpu_of_thread: HashMap<u32, f64>,
    /// What of that was in user code.
    pub user_of_thread: HashMap<u32, f64>,
    /// Processors that there are; 0: not known.
    pub cpus: u32,
    /// What things cost here.
    pub costs: Costs,
}

/// What page faults are called in [`Basis::cpu_of`].
pub(super) const FAULTS: &str = "page-fault";

impl Basis {
    /// So many in each second.
    pub(super) fn rate(&self, count: u64) -> f64 {
        if self.span_ns > 0.0 { count as f64 * 1e9 / self.span_ns } else { 0.0 }
    }

    /// For how long there was a processor that the target did not use, were its work spread evenly, in nanoseconds.
    pub(super) fn spare_ns(&self) -> f64 {
        (self.span_ns - self.cpu_ns / f64::from(self.cpus.max(1))).max(0.0)
    }

    /// So many in each second of processor time, or of the time that was looked, if that is shorter.
    pub(super) fn rate_on_cpu(&self, count: u64) -> f64 {
        let ns = self.span_ns.min(self.cpu_ns);
        if ns > 0.0 { count as f64 * 1e9 / ns } else { 0.0 }
    }

    /// Processor time of a call as it was sampled, in nanoseconds.
    pub(super) fn cpu(&self, name: &str) -> f64 {
        self.cpu_of.get(name).copied().unwrap_or(0.0)
    }

    /// Processor time of `part` out of `all` calls of these names, in nanoseconds: its share of what was sampled, and no less than so
    /// many calls take that do nothing, as getting in and out is no part of what is sampled in a call.
    pub(super) fn part(&self, names: &[&str], part: u64, all: u64) -> f64 {
        let sampled: f64 = names.iter().map(|name| self.cpu(name)).sum();
        let share = if all == 0 { 0.0 } else { sampled * part as f64 / all as f64 };
        share.max(part as f64 * self.costs.call)
    }

    /// Processor time of so many page faults out of all, in nanoseconds.
    pub(super) fn faults(&self, part: u64, all: u64) -> f64 {
        match (self.cpu_of.is_empty(), all) {
            (_, 0) => 0.0,
            (true, _) => part as f64 * self.costs.fault,
            (false, _) => self.cpu(FAULTS) * part as f64 / all as f64,
        }
    }
}
