//! Predicted gain of a remedy: an interval, from the cost of the cause and of what disappears with it.
//!
//! Part of the matched share remains, because the replacement has a cost too. Code around the cause disappears with it: wrappers between the
//! user's function and the cause, and the part of the function that only served the cause. Each rule has a model of these parts, measured on
//! programs with known causes (`bench/verdict`). Without a valid model, nothing is predicted.

use serde::Deserialize;

use crate::share::{Sampling, Share};

use super::spent::Spent;

/// A rule's model.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(in crate::advice) enum GainModel {
    /// The cost of the replacement can't be estimated.
    Unknown,
    /// Least and most of the matched share that disappears, as fractions of 1; and the largest fraction of the own time of its callers, up to the
    /// user's function, that disappears with it.
    Parts { least: f64, most: f64, callers: f64 },
    /// Least and most of all work for the lines of the user's code that call these functions, provided the functions are most of that work: the
    /// remedy replaces the whole statement. Otherwise as [`Parts`](Self::Parts).
    Lines { least: f64, most: f64, callers: f64 },
    /// As `Lines`, for a cause whose consequences are not below it: if the cause is a good part of all time, everything that is not done for
    /// other lines of the user's own code may disappear with it, in the library, the runtime or the kernel.
    Everything { least: f64, callers: f64 },
    /// As `Parts`, of the largest part that loops can avoid.
    Loops { least: f64, most: f64 },
    /// As `Parts`, of CPU time only: the elapsed time does not change.
    CpuOnly { least: f64, most: f64 },
}

/// Share of a line's cost from which on functions count as most of the line.
const MOST_OF_LINES: f64 = 0.4;

/// A cause has at least this share, in percent, before all around it may go.
const GOOD_PART: f64 = 30.0;

/// Smallest share of the runtime's work elsewhere that disappears with the cause.
const LEAST_ELSEWHERE: f64 = 0.6;

/// Predicted gain of a remedy, in percent of CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
    /// The elapsed time doesn't change.
    pub is_cpu_only: bool,
}

impl Prediction {
    /// Returns the prediction for a part of the cost, 0 to 1.
    pub(super) fn scaled(self, part: f64) -> Self {
        Self { low: self.low * part, high: self.high * part, ..self }
    }
}

impl GainModel {
    /// The prediction for what was spent.
    pub(super) fn predict(self, spent: &Spent, share: Share, sampling: &Sampling) -> Option<Prediction> {
        let is_cpu_only = matches!(self, GainModel::CpuOnly { .. });
        let (low, high) = match self {
            GainModel::Unknown => return None,
            GainModel::Parts { least, most, callers } => {
                let around = spent.around.percent_of(sampling.whole());
                (share.low * least, share.high * most + around * callers)
            }
            GainModel::Lines { least, most, callers } => {
                let (low, high) = of_lines(spent, share, sampling);
                (low * least, high * most + spent.around.percent_of(sampling.whole()) * callers)
            }
            GainModel::Everything { least, callers } => {
                let (low, high) = of_lines(spent, share, sampling);
                let high = high + spent.around.percent_of(sampling.whole()) * callers;
                let is_much = share.percent >= GOOD_PART;
                let rest = 100.0 - sampling.share(spent.others).low;
                (low * least, if is_much { high.max(rest) } else { high })
            }
            GainModel::Loops { least, most } => {
                let whole: f64 = spent.loops.iter().map(|one| one.weight).sum();
                let avoidable: f64 = spent.loops.iter().map(|one| one.weight * one.avoidable).sum();
                let part = if whole > 0.0 { avoidable / whole } else { 0.0 };
                (share.low * part * least, share.high * (part * most).min(1.0))
            }
            GainModel::CpuOnly { least, most } => (share.low * least, share.high * most),
        };
        let elsewhere = spent.elsewhere.percent_of(sampling.whole());
        let (low, high) = (low + elsewhere * LEAST_ELSEWHERE, high + elsewhere);
        Some(Prediction { low, high: high.min(100.0), is_cpu_only })
    }
}

/// Returns the bounds of the share of the user's lines if the cause is most of them; otherwise those of the cause itself.
fn of_lines(spent: &Spent, share: Share, sampling: &Sampling) -> (f64, f64) {
    let lines = sampling.share(spent.lines);
    if share.percent < MOST_OF_LINES * lines.percent {
        return (share.low, share.high);
    }
    let through = sampling.share(spent.through);
    // Other calls of these lines work on the cause's results, or are made because of it.
    let is_all = share.percent >= MOST_OF_LINES * through.percent;
    let all = if is_all { through.high } else { lines.high };
    (share.low.max(lines.low), share.high.max(lines.high).max(all))
}
