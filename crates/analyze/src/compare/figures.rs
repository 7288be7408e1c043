//! Figures of two commands that ran in turns, and the conclusion that all of them allow.
//!
//! Elsewhere: the comparison of one figure ([`Comparison`]), sentences (`documents`).

use super::{Comparison, Verdict, holm};
use crate::spread::Spread;

/// Level of the confidence intervals of figures.
pub const CONFIDENCE: f64 = 0.95;
/// A difference within this fraction of the base is small enough to be reported as a bound.
pub const SMALL_DIFFERENCE: f64 = 0.05;
/// Figures that decide if the commands print no metric.
const DECIDING: [&str; 2] = ["wall_ns", "cpu_ns"];

/// One figure of both sides.
#[derive(Clone, Debug)]
pub struct ComparedFigure {
    /// Name in JSON.
    pub name: &'static str,
    /// Title in text.
    pub title: &'static str,
    /// Whether a larger value is better.
    pub more_is_better: bool,
    /// Values of A and B, in the order of their runs; a single one each for a figure that is not measured in each run.
    pub values: [Vec<f64>; 2],
    /// `None`: too few values to compare.
    pub comparison: Option<Comparison>,
    /// p value, corrected by Holm's method for all figures.
    pub p: f64,
    /// Conclusion on this figure.
    pub verdict: Verdict,
}

impl ComparedFigure {
    /// Creates a figure, of which less is better, without a verdict yet.
    pub fn new(name: &'static str, title: &'static str, values: [Vec<f64>; 2]) -> Self {
        let comparison = Comparison::of(&values[0], &values[1], CONFIDENCE);
        let p = comparison.map_or(1.0, |comparison| comparison.p);
        Self { name, title, more_is_better: false, values, comparison, p, verdict: Verdict::CantTell }
    }

    /// Returns the median of A (0) or B (1).
    pub fn median(&self, side: usize) -> f64 {
        Spread::of(&self.values[side]).map_or(0.0, |spread| spread.median)
    }

    /// Returns whether B is better; `None` if undecided or equal.
    pub fn is_better(&self) -> Option<bool> {
        match self.verdict {
            Verdict::Less => Some(!self.more_is_better),
            Verdict::More => Some(self.more_is_better),
            Verdict::Same | Verdict::CantTell => None,
        }
    }
}

/// The conclusion on B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conclusion {
    /// Some deciding figures are better, none is worse.
    Faster,
    /// Some are worse, none is better.
    Slower,
    /// Some are better, others worse.
    Mixed,
    /// Any differences are too small to matter.
    Same,
    /// Any differences are at most this fraction.
    AtMost(f64),
    /// These runs are inconclusive.
    CantTell,
}

/// The comparison of two commands.
#[derive(Clone, Debug)]
pub struct CommandComparison {
    /// Number of runs of each command.
    pub runs: u32,
    /// Significance level.
    pub alpha: f64,
    /// Largest difference, as a fraction, that counts as equal.
    pub same: f64,
    /// All figures.
    pub figures: Vec<ComparedFigure>,
}

impl CommandComparison {
    /// Corrects p values for the number of figures, and decides on each figure.
    pub fn new(runs: u32, alpha: f64, same: f64, mut figures: Vec<ComparedFigure>) -> Self {
        let mut compared: Vec<_> = figures.iter_mut().filter(|one| one.values[0].len() > 1).collect();
        let corrected = holm(&compared.iter().map(|one| one.p).collect::<Vec<_>>());
        for (one, p) in compared.iter_mut().zip(corrected) {
            one.p = p;
            let verdict = one.comparison.map(|comparison| comparison.verdict(p, alpha, same));
            one.verdict = verdict.unwrap_or(Verdict::CantTell);
        }
        Self { runs, alpha, same, figures }
    }

    /// Returns the figures that decide: the metric, or elapsed and CPU time.
    pub fn deciding(&self) -> Vec<&ComparedFigure> {
        let metric = self.figures.iter().find(|one| one.name == "metric");
        metric.map_or_else(
            || self.figures.iter().filter(|one| DECIDING.contains(&one.name)).collect(),
            |metric| vec![metric],
        )
    }

    /// Returns the conclusion of the deciding figures.
    pub fn conclusion(&self) -> Conclusion {
        let by = self.deciding();
        let better: Vec<bool> = by.iter().filter_map(|one| one.is_better()).collect();
        let bounds: Option<Vec<f64>> = by.iter().map(|one| self.bound(one)).collect();
        match (better.contains(&true), better.contains(&false), bounds) {
            (true, false, _) => Conclusion::Faster,
            (false, true, _) => Conclusion::Slower,
            (true, true, _) => Conclusion::Mixed,
            _ if by.iter().all(|one| one.verdict == Verdict::Same) => Conclusion::Same,
            (_, _, Some(bounds)) => Conclusion::AtMost(bounds.into_iter().fold(0.0, f64::max)),
            _ => Conclusion::CantTell,
        }
    }

    /// Returns the largest difference, as a fraction, within the confidence interval of a figure, if it is small.
    pub fn bound(&self, figure: &ComparedFigure) -> Option<f64> {
        match figure.verdict {
            Verdict::Same => Some(self.same),
            Verdict::CantTell => {
                let ratio = figure.comparison?.ratio;
                let most = (ratio.low - 1.0).abs().max((ratio.high - 1.0).abs());
                (ratio.is_wide_enough() && most <= SMALL_DIFFERENCE).then_some(most)
            }
            Verdict::Less | Verdict::More => None,
        }
    }

    /// Returns the number of figures that were compared.
    pub fn compared(&self) -> usize {
        self.figures.iter().filter(|one| one.comparison.is_some()).count()
    }

    /// Returns the number of runs of each side that would make the apparent difference significant.
    pub fn needed_runs(&self) -> f64 {
        let undecided = self.deciding().into_iter().filter(|one| one.verdict == Verdict::CantTell);
        let needed = undecided.filter_map(|one| one.comparison).map(|comparison| {
            let seen = comparison.ratio.value.ln().abs().max(self.same);
            f64::from(self.runs) * (comparison.detectable.ln() / seen).powi(2)
        });
        needed.fold(0.0, f64::max).ceil()
    }
}

/// Returns the smallest number of runs of each side that allows a verdict on this number of figures, if all values of one side lie below
/// all of the other; `None` if `runs` are enough.
pub fn enough_runs(figures: usize, runs: u32, alpha: f64) -> Option<u32> {
    let enough = (2..=runs.max(20)).find(|&runs| least_p(runs) * figures as f64 <= alpha);
    enough.filter(|&enough| enough > runs)
}

/// Returns the smallest p value of this number of runs of each side: two of all orderings separate the sides completely.
fn least_p(runs: u32) -> f64 {
    let ways: f64 = (1..=runs).map(|k| f64::from(runs + k) / f64::from(k)).product();
    2.0 / ways
}
