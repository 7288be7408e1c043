//! The change of a row between the base and the new side.
//!
//! A row has changed if it deviates from the other rows ([`Speed`]) by more than sampling noise and the scatter of functions explain, and if its
//! time changed in the same direction, so that neither a slow moment of the machine nor a change of other functions is attributed to it. With
//! several recordings a side it also has to differ by more than they do. Shares, and rows that are nearly the whole, are compared by Welch's
//! test, with no variance below that of sampling alone.

use super::speed::{Expected, Speed};
use super::student::{exceeded, two_sided, welch};
use super::sum::Sum;
use super::{DiffOptions, Per};

/// Largest p value at which a row's time counts as confirming its deviation from the other rows.
const AGREES: f64 = 0.3;
/// A row with this share of the total has no other rows to be compared with.
const NEARLY_ALL: f64 = 0.9;
/// Factor on the standard error of means if all runs of one side were recorded before those of the other: successive runs are
/// correlated (by 0.35 to 0.46 where it was measured; the factor is the square root of (1 + 0.45) / (1 - 0.45)).
const BLOCKED: f64 = 1.6;
/// Degrees of freedom granted to the scatter that rows have in common, against a row's own scatter between runs.
const IN_COMMON: f64 = 4.0;
/// A row whose variance between runs exceeds the usual one by this factor is judged by its own (95% of F with 4 and many degrees of freedom).
const CLEARLY: f64 = 2.4;
/// The normal quantile for a power of 80%.
const POWER: f64 = 0.841_621;
/// A side with less than this share of the other's cost counts as having none.
const GONE: f64 = 0.02;
/// Functions below this share of the total are easily overlooked.
const VISIBLE: f64 = 0.01;

/// The number of recordings, and the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// One recording a side.
    Single,
    /// Several, all of one side before the other: a disturbance of the machine affects one side only.
    Blocked,
    /// Several, alternating between the sides.
    Turns,
}

/// A recording: the total of all rows, and its normalization.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub whole: Sum,
    /// A value is a weight times this factor.
    pub factor: f64,
}

/// The change of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Cost in the base and in the new side, normalized as requested: means of the recordings.
    pub value: [f64; 2],
    /// Share of the total, 0 to 1.
    pub share: [f64; 2],
    /// Number of samples, or of aggregated rows of samples.
    pub samples: [u64; 2],
    /// Lower bound of the confidence interval of the difference, at the row's own level, so that it excludes 0 exactly where the row is marked;
    /// corrected to the speed of the base as the other rows show it ([`Diff::speed`](super::Diff::speed)).
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
    /// p value of the difference.
    pub p: f64,
    /// p value corrected over all rows (false discovery rate).
    pub q: f64,
    /// p value of the difference of shares, corrected over all rows.
    pub q_share: f64,
    /// The smallest relative change that would have been detected with a power of 80%; infinite if none would.
    pub detectable: f64,
}

/// The conclusion about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Costs more.
    More,
    /// Costs less.
    Less,
    /// Cost practically nothing before.
    New,
    /// Costs practically nothing now.
    Vanished,
    /// No significant change.
    Noise,
}

/// The change of a row's share whose time shows no significant change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The share was below 1% and is above now.
    Newly,
    /// The share grew.
    More,
    /// The share shrank.
    Less,
    /// No significant change of the share.
    Same,
}

impl Change {
    /// Returns new minus base.
    pub fn difference(&self) -> f64 {
        self.value[1] - self.value[0]
    }

    /// Returns the difference of the shares, -1 to 1.
    pub fn share_difference(&self) -> f64 {
        self.share[1] - self.share[0]
    }

    /// Returns the difference as a share of the base; `None` if the base is zero.
    pub fn relative(&self) -> Option<f64> {
        (self.value[0] > 0.0).then(|| self.difference() / self.value[0])
    }

    /// Returns the mark at significance level `alpha`.
    pub fn mark(&self, alpha: f64) -> Mark {
        let [base, new] = self.value;
        match self.q <= alpha {
            false => Mark::Noise,
            true if base < GONE * new => Mark::New,
            true if new < GONE * base => Mark::Vanished,
            true if new > base => Mark::More,
            true => Mark::Less,
        }
    }

    /// Returns how its share changed, at significance level `alpha`.
    pub fn visibility(&self, alpha: f64) -> Visibility {
        match self.q_share <= alpha {
            false => Visibility::Same,
            true if self.share[0] < VISIBLE && self.share[1] >= VISIBLE => Visibility::Newly,
            true if self.share[1] > self.share[0] => Visibility::More,
            true => Visibility::Less,
        }
    }

    /// Whether its interval lies within plus and minus `share` of the base.
    pub fn is_same_within(&self, share: f64) -> bool {
        let most = share * self.value[0];
        self.value[0] > 0.0 && self.low > -most && self.high < most
    }
}

/// A difference with its standard error.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    difference: f64,
    error: f64,
    freedom: f64,
    /// Half a sample on each side: the continuity correction for counts.
    step: f64,
    /// `false`: the direction of the difference is in doubt, so it is not significant.
    agrees: bool,
}

impl Estimate {
    fn p(&self) -> f64 {
        let clear = (self.difference.abs() - self.step).max(0.0);
        if self.error > 0.0 && self.agrees { two_sided(clear / self.error, self.freedom) } else { 1.0 }
    }

    /// Returns the interval at this level: it excludes 0 exactly if p is at most the level.
    fn interval(&self, level: f64) -> [f64; 2] {
        let half =
            if level > 0.0 { exceeded(level, self.freedom) * self.error + self.step } else { f64::INFINITY };
        let (low, high) = (self.difference - half, self.difference + half);
        if self.agrees { [low, high] } else { [low.min(0.0), high.max(0.0)] }
    }

    /// Returns the difference detected with a power of 80% at this level.
    fn detectable(&self, level: f64) -> f64 {
        if level <= 0.0 || self.error <= 0.0 {
            return f64::INFINITY;
        }
        (exceeded(level, self.freedom) + POWER) * self.error + self.step
    }

    fn times(self, factor: f64) -> Self {
        Estimate {
            difference: self.difference * factor,
            error: self.error * factor,
            step: self.step * factor,
            ..self
        }
    }
}

/// The context for computing changes.
pub(super) struct Comparing<'a> {
    /// Recordings of the base and of the new side.
    runs: &'a [Vec<Run>; 2],
    evidence: Evidence,
    speed: &'a Speed,
    /// Set if values are shares: the number of units in the whole.
    per_share: Option<f64>,
    alpha: f64,
}

/// A row's change before correction over all rows.
pub(super) struct Draft {
    change: Change,
    p_share: f64,
    value: Estimate,
}

impl Draft {
    pub fn p(&self) -> f64 {
        self.change.p
    }

    pub fn p_share(&self) -> f64 {
        self.p_share
    }

    /// Returns the row's weight in the correction: its mean share, which does not depend on the direction of the change.
    pub fn weight(&self) -> f64 {
        f64::midpoint(self.change.share[0], self.change.share[1])
    }
}

impl<'a> Comparing<'a> {
    pub fn new(runs: &'a [Vec<Run>; 2], evidence: Evidence, speed: &'a Speed, options: &DiffOptions) -> Self {
        // Nanoseconds per second.
        let per_share = (options.per == Per::Second).then_some(1e9);
        Self { runs, evidence, speed, per_share, alpha: options.alpha }
    }

    /// Computes the change of a row that cost `sums` in the recordings of each side. `is_kernel`: the row is kernel code; `expected`: its
    /// change if it is unaffected.
    pub fn draft(&self, sums: [&[Sum]; 2], is_kernel: bool, expected: Expected) -> Draft {
        let share = self.share(sums, expected.scatter(is_kernel));
        let shares = self.shares(sums).map(|shares| mean(&shares));
        let is_nearly_all = shares.iter().all(|&share| share >= NEARLY_ALL);
        let value = match self.per_share {
            Some(parts) => share.times(parts),
            None if !is_nearly_all => self.beside(sums, is_kernel, expected),
            None if self.evidence == Evidence::Single => self.beside(sums, is_kernel, self.speed.unknown()),
            None => self.time(sums),
        };
        let change = Change {
            value: self.values(sums).map(|values| mean(&values)),
            share: shares,
            samples: sums.map(|sums| sums.iter().map(|sum| sum.samples).sum()),
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            p: value.p(),
            q: value.p(),
            q_share: share.p(),
            detectable: f64::INFINITY,
        };
        Draft { change, p_share: share.p(), value }
    }

    /// Completes a change with corrected p values. The levels are those of a row that alone changed, and of a row among the marked ones.
    pub fn finish(&self, draft: Draft, [q, q_share]: [f64; 2], [alone, beside]: [f64; 2]) -> Change {
        let Draft { change, value, .. } = draft;
        let least = value.detectable(alone) / change.value[0].max(change.value[1]);
        let [low, high] = value.interval(beside);
        let detectable = if least.is_nan() { f64::INFINITY } else { least };
        Change { low, high, q, q_share, detectable, ..change }
    }

    /// Returns the change of the total.
    pub fn whole(&self) -> Change {
        let wholes = self.runs.each_ref().map(|runs| runs.iter().map(|run| run.whole).collect::<Vec<Sum>>());
        let draft = self.draft([&wholes[0], &wholes[1]], false, self.speed.unknown());
        let p = draft.p();
        self.finish(draft, [p, 1.0], [self.alpha; 2])
    }

    fn values(&self, sums: [&[Sum]; 2]) -> [Vec<f64>; 2] {
        let side = |side: usize| {
            let pairs = sums[side].iter().zip(&self.runs[side]);
            pairs.map(|(sum, run)| sum.weight * run.factor).collect()
        };
        [side(0), side(1)]
    }

    fn shares(&self, sums: [&[Sum]; 2]) -> [Vec<f64>; 2] {
        let side = |side: usize| {
            let pairs = sums[side].iter().zip(&self.runs[side]);
            pairs.map(|(sum, run)| ratio(sum.weight, run.whole.weight)).collect()
        };
        [side(0), side(1)]
    }

    /// Estimates a row's change relative to what the other rows show.
    fn beside(&self, sums: [&[Sum]; 2], is_kernel: bool, expected: Expected) -> Estimate {
        let varies = self.speed.varies(&sums.concat());
        let scatter = expected.scatter(is_kernel) + expected.variance;
        let [base, new] = self.speed.factors;
        let all = sums.map(|sums| sums.iter().sum());
        let plain = single_time(all, [base, new], varies, 0.0);
        let beside = single_time(all, [base * expected.ratio, new], varies, scatter);
        // If it takes less time but more than the others do, either the machine was slower in the base, or the others changed.
        let agrees = plain.difference * beside.difference > 0.0 && plain.p() <= AGREES;
        let runs = self.between_runs(sums, expected.ratio);
        let (error, freedom) = moderated(&beside, &runs);
        Estimate { error: error * self.apart(), freedom, agrees, ..beside }
    }

    /// Estimates a row's scatter between runs of a side, after removing the differences in speed between runs.
    fn between_runs(&self, sums: [&[Sum]; 2], expected: f64) -> Estimate {
        let values = [(0, expected), (1, 1.0)].map(|(side, expected)| {
            let runs = sums[side].iter().zip(&self.runs[side]).zip(&self.speed.of_runs[side]);
            runs.map(|((sum, run), speed)| sum.weight * run.factor * expected / speed).collect::<Vec<f64>>()
        });
        let none = values.each_ref().map(|values| vec![0.0; values.len()]);
        several(&values, &none)
    }

    fn time(&self, sums: [&[Sum]; 2]) -> Estimate {
        let squares = |side: usize| -> Vec<f64> {
            let pairs = sums[side].iter().zip(&self.runs[side]);
            pairs.map(|(sum, run)| sum.square * run.factor * run.factor).collect()
        };
        self.several(&self.values(sums), &[squares(0), squares(1)])
    }

    fn share(&self, sums: [&[Sum]; 2], scatter: f64) -> Estimate {
        if let [[base], [new]] = sums {
            let (sums, wholes) = ([*base, *new], [self.runs[0][0].whole, self.runs[1][0].whole]);
            return single_share(sums, wholes, self.speed.varies(&sums), scatter);
        }
        let squares = |side: usize| -> Vec<f64> {
            let pairs = sums[side].iter().zip(&self.runs[side]);
            pairs.map(|(sum, run)| share_variance(sum, &run.whole)).collect()
        };
        self.several(&self.shares(sums), &[squares(0), squares(1)])
    }

    fn several(&self, values: &[Vec<f64>; 2], sampling: &[Vec<f64>; 2]) -> Estimate {
        let estimate = several(values, sampling);
        Estimate { error: estimate.error * self.apart(), ..estimate }
    }

    fn apart(&self) -> f64 {
        if self.evidence == Evidence::Blocked { BLOCKED } else { 1.0 }
    }
}

/// Estimates the difference of two counts under the hypothesis of equal rates. `varies`: their variance as a multiple of the Poisson
/// variance; `scatter`: additional variance of the logarithm of their ratio.
fn single_time(sums: [Sum; 2], factors: [f64; 2], varies: f64, scatter: f64) -> Estimate {
    let [base, new] = sums;
    let both = base.weight + new.weight;
    let unit = ratio(base.square + new.square, both);
    let rate = both / (1.0 / factors[0] + 1.0 / factors[1]);
    let reach = unit * (factors[0] + factors[1]);
    let variance = varies * rate * reach + scatter * rate * rate;
    Estimate {
        difference: new.weight * factors[1] - base.weight * factors[0],
        error: variance.sqrt(),
        freedom: f64::INFINITY,
        step: reach / 2.0,
        agrees: true,
    }
}

/// Estimates the difference of two shares under the hypothesis that they are equal; see [`single_time`].
fn single_share(sums: [Sum; 2], wholes: [Sum; 2], varies: f64, scatter: f64) -> Estimate {
    let [base, new] = sums;
    let (row, whole) = (base.weight + new.weight, wholes[0].weight + wholes[1].weight);
    let unit = ratio(base.square + new.square, row);
    let others = ratio(wholes[0].square + wholes[1].square - base.square - new.square, whole - row);
    let share = ratio(row, whole);
    let one = share * (1.0 - share);
    let reach = ratio(1.0, wholes[0].weight) + ratio(1.0, wholes[1].weight);
    let variance =
        varies * one * ((1.0 - share) * unit + share * others.max(0.0)) * reach + scatter * one * one;
    Estimate {
        difference: ratio(new.weight, wholes[1].weight) - ratio(base.weight, wholes[0].weight),
        error: variance.max(0.0).sqrt(),
        freedom: f64::INFINITY,
        step: unit * reach / 2.0,
        agrees: true,
    }
}

/// Returns the standard error and degrees of freedom of a row that may scatter more between runs than others do (a moderated t, as in G. Smyth,
/// Linear models and empirical Bayes methods, 2004).
fn moderated(usual: &Estimate, runs: &Estimate) -> (f64, f64) {
    let more = (runs.error / usual.error).powi(2);
    if more <= 1.0 {
        return (usual.error, usual.freedom);
    }
    if more > CLEARLY {
        return (runs.error, runs.freedom);
    }
    let freedom = IN_COMMON + runs.freedom;
    let square = (IN_COMMON * usual.error.powi(2) + runs.freedom * runs.error.powi(2)) / freedom;
    (square.sqrt(), freedom)
}

/// Returns the sampling variance of a row's share of a recording.
fn share_variance(row: &Sum, whole: &Sum) -> f64 {
    let share = ratio(row.weight, whole.weight);
    let others = (whole.square - row.square).max(0.0);
    ratio((1.0 - share).powi(2) * row.square + share.powi(2) * others, whole.weight * whole.weight)
}

/// Welch's test. `sampling`: the sampling variance of each value, a lower bound of the variance used. A side with one value is
/// assumed to vary as the other.
fn several(values: &[Vec<f64>; 2], sampling: &[Vec<f64>; 2]) -> Estimate {
    let own = values.each_ref().map(|values| variance(values));
    let side = |side: usize| {
        let (spread, of) = match own[side] {
            Some(spread) => (spread, side),
            None => (own[1 - side].unwrap_or(0.0), 1 - side),
        };
        let square = spread.max(mean(&sampling[side])) / values[side].len().max(1) as f64;
        (square, (values[of].len() as f64 - 1.0).max(1.0))
    };
    let ((base, base_freedom), (new, new_freedom)) = (side(0), side(1));
    let square = base + new;
    Estimate {
        difference: mean(&values[1]) - mean(&values[0]),
        error: square.sqrt(),
        freedom: welch([base, new], [base_freedom, new_freedom]),
        step: 0.0,
        agrees: true,
    }
}

fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

fn variance(values: &[f64]) -> Option<f64> {
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Returns 0 if the denominator is not positive.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
