//! What a remedy gains: an interval, from what went into the cause and what goes with it.
//!
//! Of the matched share a part stays, as what replaces it costs something; and what stands around it goes as well: wrappers between the
//! user's function and the cause, and the part of the function that only served it. Which parts is a model of each rule, measured on
//! programs with known causes (`bench/verdict`). Where no model holds nothing is predicted.

use crate::share::{Sampling, Share};

use super::spent::Spent;

/// A rule's model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GainModel {
    /// What replaces the code can't be estimated.
    Unknown,
    /// Parts of what matched that go at least and at most, as shares of one; and the part of the own time of its callers up to the user's
    /// function that goes with it at most.
    Parts { least: f64, most: f64, callers: f64 },
    /// Parts of all that is done for the lines of the user's code that call these functions, where that is most of it: the remedy takes the
    /// place of the whole statement. Otherwise as [`Parts`](Self::Parts).
    Lines { least: f64, most: f64, callers: f64 },
    /// Likewise where what goes with the cause isn't below it: where it is a good part of all, whatever isn't done for other lines of
    /// the user's own code may go with it, in the library, the runtime or the kernel.
    Everything { least: f64, callers: f64 },
    /// Likewise, of what loops can avoid at most.
    Loops { least: f64, most: f64 },
    /// Likewise, of processor time alone: the elapsed time stays.
    CpuOnly { least: f64, most: f64 },
}

/// Functions are most of a line with this part of it.
const MOST_OF_LINES: f64 = 0.4;

/// A cause has at least this share, in percent, before all around it may go.
const GOOD_PART: f64 = 30.0;

/// Of what a runtime does elsewhere at least this part goes with the cause.
const LEAST_ELSEWHERE: f64 = 0.6;

/// What a remedy is predicted to gain, in percent of processor time.
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
    /// That of a part, 0 to 1.
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

/// What the user's lines take at least and at most that a cause is most of; otherwise the cause itself.
fn of_lines(spent: &Spent, share: Share, sampling: &Sampling) -> (f64, f64) {
    let lines = sampling.share(spent.lines);
    if share.percent < MOST_OF_LINES * lines.percent {
        return (share.low, share.high);
    }
    let through = sampling.share(spent.through);
    // What the lines call besides works on what the cause made, or is called for its sake.
    let is_all = share.percent >= MOST_OF_LINES * through.percent;
    let all = if is_all { through.high } else { lines.high };
    (share.low.max(lines.low), share.high.max(lines.high).max(all))
}
