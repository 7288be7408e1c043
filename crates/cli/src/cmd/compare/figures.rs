//! The figures of all runs, by side, and their comparison.

use plumb_analyze::{Comparison, Verdict, holm};
use plumb_stat_runner::RunStats;

use super::Args;
use crate::run_metrics::{METRICS, Unit};

/// Level of the confidence intervals.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Figures of `plumb stat` that are compared.
const COMPARED: [&str; 7] =
    ["wall_ns", "cpu_ns", "max_rss_bytes", "minor_faults", "context-switches", "cycles", "instructions"];

/// Number of figures that every run has: elapsed time, CPU time, page faults.
const ALWAYS: usize = 3;
/// Number of figures that need a performance counter.
const OF_COUNTERS: usize = 2;

/// The smallest and largest number of figures that will be compared, known before the first run.
pub(super) fn expected(args: &Args, has_counters: bool) -> [usize; 2] {
    let metric = usize::from(args.metric.is_some() || args.metric_less.is_some());
    // One more for the kernel's share of the CPU time.
    let most = COMPARED.len() + 1 - if has_counters { 0 } else { OF_COUNTERS };
    [ALWAYS + metric, most + metric]
}

/// The figures of the runs so far.
#[derive(Default)]
pub(super) struct Figures {
    /// Runs of A and B.
    runs: [Vec<Run>; 2],
    /// System calls in one run of each side.
    pub calls: [Option<u64>; 2],
    /// The reason why the kernel counted nothing.
    pub missing: Option<String>,
}

struct Run {
    values: Vec<Option<f64>>,
    kernel_ns: Option<f64>,
    metric: Option<f64>,
}

/// One figure of both sides.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: Unit,
    pub more_is_better: bool,
    /// The values of A and B, in the order of their runs; a single one each for a figure that is not measured in each run.
    pub values: [Vec<f64>; 2],
    /// `None`: too few values to compare.
    pub comparison: Option<Comparison>,
    /// p-value, corrected by Holm's method for all figures.
    pub p: f64,
    pub verdict: Verdict,
}

impl Figures {
    /// Adds a run of A (0) or B (1).
    pub fn add(&mut self, side: usize, run: &RunStats, metric: Option<f64>) {
        let of = |name: &&str| {
            METRICS.iter().find(|metric| metric.name == *name).and_then(|metric| (metric.value)(run))
        };
        let values = COMPARED.iter().map(of).collect();
        let seen = run.seen.as_ref().map(|seen| (seen.kernel as f64, (seen.kernel + seen.user) as f64));
        let share = seen.filter(|&(_, all)| all > 0.0).map(|(kernel, all)| kernel / all);
        let kernel_ns = share.map(|share| share * run.usage.cpu.total_ns() as f64);
        self.runs[side].push(Run { values, kernel_ns, metric });
    }

    /// Compares the sides, figure by figure.
    pub fn compare(&self, args: &Args) -> Vec<Compared> {
        let mut all = Vec::new();
        let metric = |run: &Run| run.metric;
        all.extend(self.one("metric", "metric", Unit::Number, metric));
        for (index, name) in COMPARED.iter().enumerate() {
            let known = METRICS.iter().find(|metric| metric.name == *name);
            all.extend(known.and_then(|known| {
                let title = if *name == "max_rss_bytes" { "peak memory" } else { known.title };
                self.one(known.name, title, known.unit, |run: &Run| run.values[index])
            }));
            if *name == "cpu_ns" {
                all.extend(self.one("kernel_ns", "  in the kernel", Unit::Time, |run: &Run| run.kernel_ns));
            }
        }
        let corrected = holm(&all.iter().map(|one| one.comparison.map_or(1.0, |c| c.p)).collect::<Vec<_>>());
        for (one, p) in all.iter_mut().zip(corrected) {
            one.more_is_better = one.name == "metric" && args.metric.is_some();
            one.p = p;
            let verdict = |comparison: Comparison| comparison.verdict(p, args.alpha, args.same);
            one.verdict = one.comparison.map_or(Verdict::CantTell, verdict);
        }
        if let [Some(a), Some(b)] = self.calls {
            all.push(Compared {
                values: [vec![a as f64], vec![b as f64]],
                ..blank("calls", "system calls", Unit::Count)
            });
        }
        all
    }

    fn one(
        &self,
        name: &'static str,
        title: &'static str,
        unit: Unit,
        of: impl Fn(&Run) -> Option<f64>,
    ) -> Option<Compared> {
        let side = |runs: &Vec<Run>| runs.iter().map(&of).collect::<Option<Vec<f64>>>();
        let values = [side(&self.runs[0])?, side(&self.runs[1])?];
        let comparison = Comparison::of(&values[0], &values[1], CONFIDENCE);
        Some(Compared { values, comparison, ..blank(name, title, unit) })
    }
}

fn blank(name: &'static str, title: &'static str, unit: Unit) -> Compared {
    Compared {
        name,
        title,
        unit,
        more_is_better: false,
        values: [Vec::new(), Vec::new()],
        comparison: None,
        p: 1.0,
        verdict: Verdict::CantTell,
    }
}

impl Compared {
    /// The median of A (0) or B (1).
    pub fn median(&self, side: usize) -> f64 {
        plumb_analyze::Spread::of(&self.values[side]).map_or(0.0, |spread| spread.median)
    }

    /// Whether B is better in this figure; `None` if undecided or equal.
    pub fn is_better(&self) -> Option<bool> {
        match self.verdict {
            Verdict::Less => Some(!self.more_is_better),
            Verdict::More => Some(self.more_is_better),
            Verdict::Same | Verdict::CantTell => None,
        }
    }
}
