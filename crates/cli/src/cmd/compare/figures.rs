//! The figures of all runs, by side.

use plumb_analyze::{CommandComparison, ComparedFigure, enough_runs};
use plumb_stat_runner::{RunStats, metric};

use crate::render::metric::MetricUnit;

use super::Args;

/// Figures of `plumb stat` that are compared.
const COMPARED: [&str; 7] =
    ["wall_ns", "cpu_ns", "max_rss_bytes", "minor_faults", "context-switches", "cycles", "instructions"];

/// Number of figures that every run has: elapsed time, CPU time, page faults.
const ALWAYS: usize = 3;
/// Number of figures that need a performance counter.
const OF_COUNTERS: usize = 2;

/// A warning before the first run that there are too few runs for any verdict.
pub(super) fn too_few(args: &Args, has_counters: bool) -> Option<String> {
    let metric = usize::from(args.metric.is_some() || args.metric_less.is_some());
    // One more for the kernel's share of the CPU time.
    let most = COMPARED.len() + 1 - if has_counters { 0 } else { OF_COUNTERS };
    enough_runs(ALWAYS + metric, args.runs, args.alpha)?;
    let enough = enough_runs(most + metric, args.runs, args.alpha)?;
    Some(format!("{} runs of each are too few for any verdict: use -n {enough}", args.runs))
}

/// The figures of the runs so far.
#[derive(Default)]
pub(super) struct Figures {
    /// Runs of A and B, each with the number that it printed.
    runs: [Vec<(RunStats, Option<f64>)>; 2],
    /// System calls in one run of each side.
    pub calls: [Option<u64>; 2],
}

impl Figures {
    /// Adds a run of A (0) or B (1).
    pub fn add(&mut self, side: usize, run: RunStats, metric: Option<f64>) {
        self.runs[side].push((run, metric));
    }

    /// Compares the sides, figure by figure.
    pub fn compare(&self, args: &Args) -> CommandComparison {
        let printed = self.one("metric", "metric", |(_, metric)| *metric);
        let mut all: Vec<ComparedFigure> = printed.into_iter().collect();
        all.iter_mut().for_each(|metric| metric.more_is_better = args.metric.is_some());
        for metric in COMPARED.iter().filter_map(|name| metric(name)) {
            let title = if metric.name == "max_rss_bytes" { "peak memory" } else { metric.title };
            all.extend(self.one(metric.name, title, |(run, _)| (metric.value)(run)));
            if metric.name == "cpu_ns" {
                all.extend(self.one("kernel_ns", "  in the kernel", |(run, _)| run.kernel_ns()));
            }
        }
        if let [Some(a), Some(b)] = self.calls {
            all.push(ComparedFigure::new("calls", "system calls", [vec![a as f64], vec![b as f64]]));
        }
        CommandComparison::new(args.runs, args.alpha, args.same, all)
    }

    fn one(
        &self,
        name: &'static str,
        title: &'static str,
        of: impl Fn(&(RunStats, Option<f64>)) -> Option<f64>,
    ) -> Option<ComparedFigure> {
        let [a, b] = self.runs.each_ref().map(|runs| runs.iter().map(&of).collect::<Option<Vec<f64>>>());
        Some(ComparedFigure::new(name, title, [a?, b?]))
    }
}

/// The unit of a figure.
pub(super) fn unit(name: &str) -> MetricUnit {
    match name {
        "metric" => MetricUnit::Number,
        "kernel_ns" => MetricUnit::Time,
        name => metric(name).map_or(MetricUnit::Number, |metric| metric.unit),
    }
}
