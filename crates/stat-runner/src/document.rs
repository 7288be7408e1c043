//! The answer of several runs: each metric with its values, the split of CPU time, threads by name. Member names are stable.

use std::collections::BTreeMap;

use plumb_analyze::{CONFIDENCE, Median, Share};
use plumb_capture_perf::Code;
use serde::Serialize;

use crate::{RunSet, ThreadGroup};

/// The answer. What was not measured is null.
#[derive(Serialize)]
pub struct StatDocument<'r> {
    version: u32,
    command: Vec<String>,
    runs: usize,
    exit_statuses: Vec<u8>,
    metrics: BTreeMap<&'static str, MetricValues>,
    modes: Option<Modes>,
    threads: Vec<ThreadGroup>,
    threads_not_told_apart_ns: u64,
    counted_code: Option<&'static str>,
    counting_calls_share: Option<f64>,
    missing: Option<&'r str>,
}

/// The values of a metric in the order of the runs, and their median with its confidence interval.
#[derive(Serialize)]
struct MetricValues {
    median: f64,
    low: f64,
    high: f64,
    confidence: f64,
    values: Vec<f64>,
}

/// The sampled share of the kernel, and the split by the kernel's tick.
#[derive(Serialize)]
struct Modes {
    kernel_share: f64,
    low: f64,
    high: f64,
    samples: u64,
    samples_kernel: u64,
    tick_user_ns: u64,
    tick_system_ns: u64,
}

impl<'r> StatDocument<'r> {
    /// Creates it. `exit_statuses`: of each run, as a shell gives it.
    pub fn new(runs: &'r RunSet, command: Vec<String>, exit_statuses: Vec<u8>) -> Self {
        let metrics = runs.values().filter_map(|(metric, values)| {
            let Median { value: median, low, high, confidence } = Median::of(&values, CONFIDENCE)?;
            Some((metric.name, MetricValues { median, low, high, confidence, values }))
        });
        let (threads, threads_not_told_apart_ns) = runs.threads();
        Self {
            version: plumb_documents::JSON_VERSION,
            command,
            runs: runs.runs.len(),
            exit_statuses,
            metrics: metrics.collect(),
            modes: Modes::of(runs),
            threads,
            threads_not_told_apart_ns,
            counted_code: runs.counted_code().map(|code| if code == Code::User { "user" } else { "all" }),
            counting_calls_share: runs.calls_cost(),
            missing: runs.missing.as_deref(),
        }
    }
}

impl Modes {
    /// Returns the split; the kernel's tick-based split is given only alongside the sampled one.
    fn of(runs: &RunSet) -> Option<Self> {
        let [samples_kernel, samples] = runs.kernel_samples();
        let [tick_user_ns, tick_system_ns] = runs.tick_ns();
        let Share { percent, low, high } = Share::of_samples(samples_kernel, samples)?;
        let [kernel_share, low, high] = [percent, low, high].map(|percent| percent / 100.0);
        Some(Self { kernel_share, low, high, samples, samples_kernel, tick_user_ns, tick_system_ns })
    }
}
