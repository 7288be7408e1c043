//! Several runs of one command: values by metric, and sums over all runs.

use std::collections::HashMap;

use plumb_capture_api::ThreadTime;
use plumb_capture_perf::Code;
use serde::Serialize;

use crate::{METRICS, Metric, RunStats};

/// Measured runs of a command.
#[derive(Default)]
pub struct RunSet {
    /// The runs, in order.
    pub runs: Vec<RunStats>,
    /// The reason why the kernel counted nothing.
    pub missing: Option<String>,
    /// Cost of counting a system call on this machine, in nanoseconds.
    pub per_call_ns: Option<f64>,
}

/// Threads with the same name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadGroup {
    /// Name.
    pub comm: String,
    /// Number of threads in all runs.
    pub threads: u64,
    /// CPU time in all runs, in nanoseconds.
    pub cpu_ns: u64,
}

impl RunSet {
    /// Figures that every run has, with their values.
    pub fn values(&self) -> impl Iterator<Item = (&'static Metric, Vec<f64>)> {
        METRICS.iter().filter_map(|metric| {
            let values: Option<Vec<f64>> = self.runs.iter().map(|run| (metric.value)(run)).collect();
            values.filter(|values| !values.is_empty()).map(|values| (metric, values))
        })
    }

    /// The values of one figure.
    pub fn of(&self, name: &str) -> Option<Vec<f64>> {
        self.values().find(|(metric, _)| metric.name == name).map(|(_, values)| values)
    }

    /// Samples in the kernel, and all samples, of all runs.
    pub fn kernel_samples(&self) -> [u64; 2] {
        let seen = || self.runs.iter().filter_map(|run| run.seen.as_ref());
        let kernel: u64 = seen().map(|seen| seen.kernel).sum();
        [kernel, kernel + seen().map(|seen| seen.user).sum::<u64>()]
    }

    /// CPU time in user code and in the kernel, as the kernel's tick splits it, in nanoseconds.
    pub fn tick_ns(&self) -> [u64; 2] {
        let cpu = || self.runs.iter().map(|run| &run.usage.cpu);
        [
            cpu().map(|cpu| cpu.user.as_nanos() as u64).sum(),
            cpu().map(|cpu| cpu.system.as_nanos() as u64).sum(),
        ]
    }

    /// The code in which hardware counters counted (user, kernel or both); `None` without counters.
    pub fn counted_code(&self) -> Option<Code> {
        let mut counts = self.runs.iter().flat_map(|run| &run.counts);
        counts.find(|count| count.name == "cycles").map(|count| count.code)
    }

    /// CPU time of all runs, in nanoseconds.
    pub fn cpu_ns(&self) -> f64 {
        self.runs.iter().map(|run| run.usage.cpu.total_ns() as f64).sum()
    }

    /// Threads by name, most CPU time first, and the CPU time that belongs to no name, in nanoseconds.
    pub fn threads(&self) -> (Vec<ThreadGroup>, u64) {
        let mut by_comm: HashMap<&str, (u64, u64)> = HashMap::new();
        let ended = self.runs.iter().filter_map(|run| run.seen.as_ref()).flat_map(|seen| &seen.threads);
        for ThreadTime { comm, threads, runtime_ns, .. } in ended {
            let entry = by_comm.entry(comm).or_default();
            *entry = (entry.0 + threads, entry.1 + runtime_ns);
        }
        let mut rows: Vec<ThreadGroup> = by_comm
            .into_iter()
            .map(|(comm, (threads, cpu_ns))| ThreadGroup { comm: comm.to_owned(), threads, cpu_ns })
            .collect();
        rows.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.comm.cmp(&b.comm)));
        let told: u64 = rows.iter().map(|row| row.cpu_ns).sum();
        (rows, (self.cpu_ns() as u64).saturating_sub(told))
    }

    /// Cost of counting system calls, as a fraction of the CPU time.
    pub fn calls_cost(&self) -> Option<f64> {
        let calls: f64 = self.of("calls")?.iter().sum();
        let cpu = self.cpu_ns();
        (cpu > 0.0).then_some(calls * self.per_call_ns? / cpu)
    }
}
