//! What the two sides of a row say of each other.
//!
//! A row has to be out of line with the others ([`Speed`]), by more than sampling and the scatter of functions explain, and its time has
//! to say the same, so that neither a slow moment of the machine nor what other functions did is taken for its change. With several
//! recordings a side it has to differ by more than they do too, and what is nearly everything, and shares, are compared by Welch's test,
//! where no variance is taken to be less than sampling alone gives.

use super::speed::{Expected, Speed};
use super::student::{exceeded, two_sided};
use super::sum::Sum;
use super::{DiffOptions, Per};

/// A row's time says the same as its place beside the others if that is no likelier by chance.
const AGREES: f64 = 0.3;
/// A row that has this share of all has no others to be compared with.
const NEARLY_ALL: f64 = 0.9;
/// How much further than their runs' scatter says means are apart that were recorded one side after the other: runs near each other are
/// alike (correlated by 0.35 to 0.46 where it was measured; the square root of (1 + 0.45) / (1 - 0.45)).
const BLOCKED: f64 = 1.6;
/// What rows do in common is worth so many degrees of freedom beside what a row itself does from run to run.
const IN_COMMON: f64 = 4.0;
/// A row whose variance from run to run is so many times what is usual has its own (95% of F with 4 and many degrees of freedom).
const CLEARLY: f64 = 2.4;
/// The normal quantile of a power of 80%.
const POWER: f64 = 0.841_621;
/// A side with less than this share of the other's is as good as nothing.
const GONE: f64 = 0.02;
/// Functions below this share are overlooked.
const VISIBLE: f64 = 0.01;

/// How many recordings there are, and in which order they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// One a side.
    Single,
    /// Several, those of a side one after the other: what the machine did meanwhile is in one side alone.
    Blocked,
    /// Several, taking turns.
    Turns,
}

/// A recording: what all rows cost together, and what makes that comparable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub whole: Sum,
    /// Values are weights times this.
    pub factor: f64,
}

/// How a row changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// What it costs in the base and in the new side, normalised as was asked for: means of the recordings.
    pub value: [f64; 2],
    /// Its share of all, 0 to 1.
    pub share: [f64; 2],
    /// Samples, or rows of samples that were added up.
    pub samples: [u64; 2],
    /// The interval of the difference of values at the row's own level, so that it leaves out 0 where the row is marked, and nowhere
    /// else; at the speed of the base as far as the other rows tell it ([`Diff::speed`](super::Diff::speed)).
    pub low: f64,
    /// Its end.
    pub high: f64,
    /// How likely such a difference is by chance.
    pub p: f64,
    /// p corrected over all rows.
    pub q: f64,
    /// How likely such a difference of shares is by chance, corrected over all rows.
    pub q_share: f64,
    /// The smallest relative change of it that would have been found four times out of five; infinite if none would.
    pub detectable: f64,
}

/// What there is to say of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Costs more.
    More,
    /// Costs less.
    Less,
    /// Cost as good as nothing before.
    New,
    /// Costs as good as nothing any more.
    Vanished,
    /// Within noise.
    Noise,
}

/// What became of a row's share where its time is not found to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It was below 1% of all, and is above.
    Newly,
    /// Its share grew.
    More,
    /// Its share shrank.
    Less,
    /// Nothing that is no noise.
    Same,
}

impl Change {
    /// New minus base.
    pub fn difference(&self) -> f64 {
        self.value[1] - self.value[0]
    }

    /// Difference of the shares, 0 to 1.
    pub fn share_difference(&self) -> f64 {
        self.share[1] - self.share[0]
    }

    /// The difference as a share of the base; `None` where the base has nothing.
    pub fn relative(&self) -> Option<f64> {
        (self.value[0] > 0.0).then(|| self.difference() / self.value[0])
    }

    /// What may be said of it where one in `1 / alpha` may be wrong.
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

    /// What became of its share.
    pub fn visibility(&self, alpha: f64) -> Visibility {
        match self.q_share <= alpha {
            false => Visibility::Same,
            true if self.share[0] < VISIBLE && self.share[1] >= VISIBLE => Visibility::Newly,
            true if self.share[1] > self.share[0] => Visibility::More,
            true => Visibility::Less,
        }
    }

    /// Whether it is known to differ by no more than this share of its base.
    pub fn is_same_within(&self, share: f64) -> bool {
        let most = share * self.value[0];
        self.value[0] > 0.0 && self.low > -most && self.high < most
    }
}

/// A difference and how well it is known.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    difference: f64,
    error: f64,
    freedom: f64,
    /// What the least step of counts makes: half a sample on each side.
    step: f64,
    /// It is no difference whose direction is in doubt.
    agrees: bool,
}

impl Estimate {
    fn p(&self) -> f64 {
        let clear = (self.difference.abs() - self.step).max(0.0);
        if self.error > 0.0 && self.agrees { two_sided(clear / self.error, self.freedom) } else { 1.0 }
    }

    /// The interval at this level: 0 is outside where p is no more than the level.
    fn interval(&self, level: f64) -> [f64; 2] {
        let half =
            if level > 0.0 { exceeded(level, self.freedom) * self.error + self.step } else { f64::INFINITY };
        let (low, high) = (self.difference - half, self.difference + half);
        if self.agrees { [low, high] } else { [low.min(0.0), high.max(0.0)] }
    }

    /// The difference that is found four times out of five at this level.
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

/// What changes are reckoned by.
pub(super) struct Comparing<'a> {
    /// Of the base and of the new side.
    runs: &'a [Vec<Run>; 2],
    evidence: Evidence,
    speed: &'a Speed,
    /// Values are shares, in parts of this.
    per_share: Option<f64>,
    alpha: f64,
}

/// A row's change before it is corrected.
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

    /// The row's part of what may go wrong: its share, which is the same whichever way it changed.
    pub fn weight(&self) -> f64 {
        f64::midpoint(self.change.share[0], self.change.share[1])
    }
}

impl<'a> Comparing<'a> {
    pub fn new(runs: &'a [Vec<Run>; 2], evidence: Evidence, speed: &'a Speed, options: &DiffOptions) -> Self {
        // Nanoseconds, of a second.
        let per_share = (options.per == Per::Second).then_some(1e9);
        Self { runs, evidence, speed, per_share, alpha: options.alpha }
    }

    /// The change of a row that cost `sums` in the recordings of each side; whether it is the kernel's, and what is
    /// expected if it is the same.
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

    /// The change, with corrected p values, of a row that is held to `levels`: as the only one that changed, and beside those that did.
    pub fn finish(&self, draft: Draft, [q, q_share]: [f64; 2], [alone, beside]: [f64; 2]) -> Change {
        let Draft { change, value, .. } = draft;
        let least = value.detectable(alone) / change.value[0].max(change.value[1]);
        let [low, high] = value.interval(beside);
        let detectable = if least.is_nan() { f64::INFINITY } else { least };
        Change { low, high, q, q_share, detectable, ..change }
    }

    /// The change of everything.
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

    /// Of a row beside what others tell.
    fn beside(&self, sums: [&[Sum]; 2], is_kernel: bool, expected: Expected) -> Estimate {
        let varies = self.speed.varies(&sums.concat());
        let scatter = expected.scatter(is_kernel) + expected.variance;
        let [base, new] = self.speed.factors;
        let all = sums.map(|sums| sums.iter().sum());
        let plain = single_time(all, [base, new], varies, 0.0);
        let beside = single_time(all, [base * expected.ratio, new], varies, scatter);
        // Less time, but more than the others: the machine was slower in the base, or they changed.
        let agrees = plain.difference * beside.difference > 0.0 && plain.p() <= AGREES;
        let runs = self.between_runs(sums, expected.ratio);
        let (error, freedom) = moderated(&beside, &runs);
        Estimate { error: error * self.apart(), freedom, agrees, ..beside }
    }

    /// How a row differs from run to run of a side, as if all were as fast.
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

/// Of two counts, as if both had the same rate; `varies`: as a multiple of chance; `scatter`: variance of the logarithm of their ratio beside that.
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

/// Of two shares, as if both were the same; see [`single_time`].
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

/// The error and the degrees of freedom of a row that may differ more from run to run than others do (a moderated t, as in G. Smyth, Linear
/// models and empirical Bayes methods, 2004).
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

/// Variance of a row's share of a recording, by sampling alone.
fn share_variance(row: &Sum, whole: &Sum) -> f64 {
    let share = ratio(row.weight, whole.weight);
    let others = (whole.square - row.square).max(0.0);
    ratio((1.0 - share).powi(2) * row.square + share.powi(2) * others, whole.weight * whole.weight)
}

/// Welch's test. `sampling`: the variance of each value by sampling alone, which none is taken to be below. A side with one value is
/// taken to vary as the other.
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
        freedom: square * square
            / (base * base / base_freedom + new * new / new_freedom).max(f64::MIN_POSITIVE),
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

/// 0 where there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
