//! Inputs for judging system calls: the observed time span, CPU time per call and thread, and the costs of operations
//! on this machine.

use std::collections::HashMap;

/// Costs of operations on this machine, in nanoseconds of CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A system call that does nothing.
    pub call: f64,
    /// Reading one byte from a cached file, without the cost of the call.
    pub byte: f64,
    /// A page fault on anonymous memory.
    pub fault: f64,
    /// Opening and closing a file.
    pub open: f64,
}

/// Facts about a recording, other than the calls themselves.
#[derive(Clone, Debug)]
pub struct Basis {
    /// Length of the observed time span, in nanoseconds.
    pub span_ns: f64,
    /// CPU time used in that span, in nanoseconds.
    pub cpu_ns: f64,
    /// Sampled CPU time of each call by name, and of page faults as `page-fault`. Empty if nothing was sampled.
    pub cpu_of: HashMap<String, f64>,
    /// CPU time of each thread.
    pub cpu_of_thread: HashMap<u32, f64>,
    /// The part of each thread's CPU time spent in user code.
    pub user_of_thread: HashMap<u32, f64>,
    /// Number of CPUs; 0: unknown.
    pub cpus: u32,
    /// Costs of operations on this machine.
    pub costs: Costs,
}

/// Name of page faults in [`Basis::cpu_of`].
pub(super) const FAULTS: &str = "page-fault";

impl Basis {
    /// Converts a count to a rate per second.
    pub(super) fn rate(&self, count: u64) -> f64 {
        if self.span_ns > 0.0 { count as f64 * 1e9 / self.span_ns } else { 0.0 }
    }

    /// Returns for how long the target left a CPU unused, in nanoseconds, assuming that its work is spread evenly.
    pub(super) fn spare_ns(&self) -> f64 {
        (self.span_ns - self.cpu_ns / f64::from(self.cpus.max(1))).max(0.0)
    }

    /// Converts a count to a rate per second of CPU time, or per second of the observed span if that is shorter.
    pub(super) fn rate_on_cpu(&self, count: u64) -> f64 {
        let ns = self.span_ns.min(self.cpu_ns);
        if ns > 0.0 { count as f64 * 1e9 / ns } else { 0.0 }
    }

    /// Returns the sampled CPU time of a call, in nanoseconds.
    pub(super) fn cpu(&self, name: &str) -> f64 {
        self.cpu_of.get(name).copied().unwrap_or(0.0)
    }

    /// Returns the CPU time of `part` out of `all` calls of these names, in nanoseconds: their share of the sampled
    /// time, but at least the time of `part` empty calls, because samples in a call do not cover entering and leaving
    /// the kernel.
    pub(super) fn part(&self, names: &[&str], part: u64, all: u64) -> f64 {
        let sampled: f64 = names.iter().map(|name| self.cpu(name)).sum();
        let share = if all == 0 { 0.0 } else { sampled * part as f64 / all as f64 };
        share.max(part as f64 * self.costs.call)
    }

    /// Returns the CPU time of `part` out of `all` page faults, in nanoseconds.
    pub(super) fn faults(&self, part: u64, all: u64) -> f64 {
        match (self.cpu_of.is_empty(), all) {
            (_, 0) => 0.0,
            (true, _) => part as f64 * self.costs.fault,
            (false, _) => self.cpu(FAULTS) * part as f64 / all as f64,
        }
    }
}
