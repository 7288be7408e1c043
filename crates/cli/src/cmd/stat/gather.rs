//! Collects the runs: a list of values for each figure, and sums over all runs.

use std::collections::HashMap;

use plumb_capture_api::ThreadTime;
use plumb_capture_perf::Code;
use plumb_stat_runner::RunStats;

use crate::exit::Exit;
use crate::run_metrics::{METRICS, Metric};

/// The results of all runs.
#[derive(Default)]
pub(super) struct Gathered {
    /// The measured runs.
    pub runs: Vec<RunStats>,
    /// The reason why the kernel counted nothing.
    pub missing: Option<String>,
    /// Cost of counting a system call on this machine, in nanoseconds.
    pub per_call_ns: Option<f64>,
}

/// Threads with the same name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Threads {
    pub comm: String,
    /// Number of threads in all runs.
    pub threads: u64,
    /// CPU time in all runs, in nanoseconds.
    pub cpu_ns: u64,
}

/// A share estimated from samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Number of samples in the share, and of all samples.
    pub samples: (u64, u64),
    /// Lower bound of the 95% confidence interval, 0 to 1.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Share {
    fn of(samples: u64, all: u64) -> Option<Self> {
        // Wilson's score interval, which is correct near 0 and 1 too.
        let (z, n) = (1.959_964, all as f64);
        let p = samples as f64 / n;
        let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        (all > 0).then_some(Self {
            samples: (samples, all),
            low: (middle - half).max(0.0),
            high: (middle + half).min(1.0),
        })
    }

    pub fn value(&self) -> f64 {
        self.samples.0 as f64 / self.samples.1 as f64
    }
}

impl Gathered {
    pub fn add(&mut self, run: RunStats) {
        self.runs.push(run);
    }

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

    /// The kernel's share of the CPU time, from the samples of all runs.
    pub fn kernel(&self) -> Option<Share> {
        let seen = || self.runs.iter().filter_map(|run| run.seen.as_ref());
        let kernel: u64 = seen().map(|seen| seen.kernel).sum();
        let user: u64 = seen().map(|seen| seen.user).sum();
        Share::of(kernel, kernel + user)
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
    pub fn threads(&self) -> (Vec<Threads>, u64) {
        let mut by_comm: HashMap<&str, (u64, u64)> = HashMap::new();
        let ended = self.runs.iter().filter_map(|run| run.seen.as_ref()).flat_map(|seen| &seen.threads);
        for ThreadTime { comm, threads, runtime_ns, .. } in ended {
            let entry = by_comm.entry(comm).or_default();
            *entry = (entry.0 + threads, entry.1 + runtime_ns);
        }
        let mut rows: Vec<Threads> = by_comm
            .into_iter()
            .map(|(comm, (threads, cpu_ns))| Threads { comm: comm.to_owned(), threads, cpu_ns })
            .collect();
        rows.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then_with(|| a.comm.cmp(&b.comm)));
        let told: u64 = rows.iter().map(|row| row.cpu_ns).sum();
        (rows, (self.cpu_ns() as u64).saturating_sub(told))
    }

    /// Exit status: that of the first failed run, or success.
    pub fn worst(&self) -> Exit {
        let exits = self.runs.iter().map(|run| Exit::of_status(run.status));
        exits.fold(Exit::Success, Exit::or)
    }

    /// Number of failed runs.
    pub fn failed(&self) -> usize {
        self.runs.iter().filter(|run| !run.status.success()).count()
    }

    /// Cost of counting system calls, as a fraction of the CPU time.
    pub fn calls_cost(&self) -> Option<f64> {
        let calls: f64 = self.of("calls")?.iter().sum();
        let cpu = self.cpu_ns();
        (cpu > 0.0).then_some(calls * self.per_call_ns? / cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_shares_are_wilsons() {
        // statsmodels.stats.proportion.proportion_confint(count, nobs, method="wilson")
        for (samples, all, low, high) in
            [(0, 10, 0.0, 0.277_533), (5, 10, 0.236_593, 0.763_407), (90, 100, 0.825_634, 0.944_773)]
        {
            let share = Share::of(samples, all).unwrap();
            assert!((share.low - low).abs() < 1e-4, "{share:?}");
            assert!((share.high - high).abs() < 1e-4, "{share:?}");
        }
        assert_eq!(Share::of(0, 0), None);
    }
}
