//! How fast the runs of one side were beside those of the other, and how far functions scatter around that, told from the runs themselves.
//!
//! Most functions cost the same in both, but for the machine's speed at the time, for sampling, and for what differs from run to run of
//! each. A function changed if it is out of line with the others; it has no part in saying where that line is.

use std::collections::HashMap;

use super::change::Run;
use super::sum::{Sum, dispersion};
use crate::share::OVERDISPERSION;

/// How far all of a run's time differs between runs: what differs by less than 23% in single recordings may be chance. (The coefficient of
/// variation of user+sys that was measured of a program on a busy virtual machine.)
const RUN_SCATTER: f64 = 0.084;
/// Means of several runs of a program do not differ by more than so many standard deviations: then it changed, as a run that took longer
/// is told by the others of its side. Of single ones that isn't known: a host that serves others made a compiler take 1.56 times as long,
/// 3.7 of them.
const APART: f64 = 1.96;
/// How far the ratio of a user function's time to the others' differs between two runs, where these say nothing themselves: the usual,
/// and by what factor it is often more or less.
const USER: (f64, f64) = (0.01, 3.0);
/// Likewise of the kernel's functions, which work for others too: three quarters of those of a compiler differed by less, where it was
/// measured on a busy machine.
const KERNEL: (f64, f64) = (0.28, 1.5);
/// So many samples a side a function has to have to say something of the others.
const TELLING: f64 = 25.0;
/// No more functions are asked, those that know best.
const MOST: usize = 256;
/// Deviations are taken to have the tails of Student's t with so many degrees of freedom: some functions did change.
const TAILS: f64 = 4.0;
/// Of which the square of the scale is this part of the variance if they are normal after all.
const SCALE: f64 = 0.6906;
/// A function that is so many standard errors out of line has no part in saying how far functions scatter, when it is asked whether it
/// changed.
const OUT_OF_LINE: f64 = 1.5;
/// Deviations beyond so many standard errors pull no more than this one does (Huber 1964).
const PULL: f64 = 1.345;

/// A function: its number, whether it is the kernel's, and what it cost in the recordings of each side.
pub(super) type Cost = (u32, bool, [Vec<Sum>; 2]);

/// A function of both sides.
#[derive(Clone, Copy, Debug)]
struct Pair {
    function: u32,
    is_kernel: bool,
    /// Logarithm of the ratio of its times in a run.
    ratio: f64,
    /// Variance of that by sampling.
    variance: f64,
}

/// What is known of two sides.
#[derive(Clone, Debug)]
pub(super) struct Speed {
    pairs: Vec<Pair>,
    /// Where nothing tells.
    unknown: Expected,
    /// How far functions scatter is known from several runs of a side.
    is_measured: bool,
    /// What all functions took in each run, those of the base first.
    wholes: Vec<Sum>,
    /// How much more than by chance samples of a function vary.
    usual: Option<f64>,
    /// What all say, and what all but one do.
    all: Expected,
    but_one: HashMap<u32, Expected>,
    /// How long all took in each run of a side, as a multiple of what they took in all of them.
    pub of_runs: [Vec<f64>; 2],
    /// What the weights of a side are multiplied by for its mean value.
    pub factors: [f64; 2],
}

/// What is expected of what did not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The new time as a multiple of the base's.
    pub ratio: f64,
    /// Variance of its logarithm.
    pub variance: f64,
    /// Variance between sides of the logarithm of a function's own ratio: of user functions, and of the kernel's.
    scatter: [f64; 2],
    /// The logarithm of `ratio` is no further from 0 than this.
    most: f64,
}

impl Expected {
    /// Where nothing tells, of means of so many runs as two, one a side, would scatter by `part` of.
    fn unknown(part: f64) -> Self {
        let variance = 2.0 * RUN_SCATTER * RUN_SCATTER * part;
        Self {
            ratio: 1.0,
            variance,
            scatter: [USER.0 * USER.0 * part, KERNEL.0 * KERNEL.0 * part],
            most: if part < 1.0 { APART * variance.sqrt() } else { f64::INFINITY },
        }
    }

    /// Variance between runs of the logarithm of a row's own ratio.
    pub fn scatter(&self, is_kernel: bool) -> f64 {
        self.scatter[usize::from(is_kernel)]
    }
}

impl Speed {
    /// Of functions in these runs.
    pub fn new(functions: &[Cost], runs: &[Vec<Run>; 2]) -> Self {
        let wholes: Vec<Sum> = runs.iter().flatten().map(|run| run.whole).collect();
        let usual = usual(functions, &wholes);
        let factors = runs.each_ref().map(|runs| mean_factor(runs));
        let varies: Vec<f64> =
            functions.iter().map(|(.., sums)| varies(&sums.concat(), &wholes, usual)).collect();
        let pairs = pairs(functions, &varies, factors, |sums| sums.each_ref().map(|sums| sums.iter().sum()));
        let mut away: [Vec<(f64, f64)>; 2] = Default::default();
        let of_runs = [0, 1].map(|side| {
            let runs = &runs[side];
            let run = |(number, run): (usize, &Run)| {
                let of = |sums: &[Vec<Sum>; 2]| [sums[side].iter().sum(), sums[side][number]];
                let pairs = self::pairs(functions, &varies, [factors[side], run.factor], of);
                let unknown = Expected::unknown(1.0);
                let ratio = line(&pairs, unknown.scatter, unknown).ratio;
                // A run is part of the mean that it is away from.
                let free = 1.0 - 1.0 / runs.len() as f64;
                for pair in pairs.iter().filter(|_| free > 0.0) {
                    let deviation = (pair.ratio - ratio.ln()) / free.sqrt();
                    away[usize::from(pair.is_kernel)].push((deviation, pair.variance * free));
                }
                ratio
            };
            runs.iter().enumerate().map(run).collect()
        });
        let [base, new] = runs.each_ref().map(|runs| 1.0 / runs.len() as f64);
        let part = f64::midpoint(base, new);
        let mut unknown = Expected::unknown(part);
        let is_measured = part < 1.0;
        if is_measured {
            // Two runs scatter twice as much as one does.
            let of_one = std::f64::consts::FRAC_1_SQRT_2;
            unknown.scatter = [(0, USER), (1, KERNEL)]
                .map(|(kernel, (usual, range))| 2.0 * part * scatter(&away[kernel], usual * of_one, range));
        }
        let mut speed = Self {
            pairs,
            unknown,
            is_measured,
            wholes,
            usual,
            all: unknown,
            but_one: HashMap::new(),
            of_runs,
            factors,
        };
        speed.all = speed.without(|_| false);
        speed.but_one = speed.pairs.iter().map(|pair| (pair.function, speed.without_one(pair))).collect();
        speed
    }

    /// How much more than by chance, or less, the samples of a row vary that has these in the runs.
    pub fn varies(&self, sums: &[Sum]) -> f64 {
        varies(sums, &self.wholes, self.usual)
    }

    /// What is expected where nothing tells.
    pub fn unknown(&self) -> Expected {
        self.unknown
    }

    /// What all functions say, but for one if that is given.
    pub fn beside(&self, function: Option<u32>) -> Expected {
        function.and_then(|function| self.but_one.get(&function)).copied().unwrap_or(self.all)
    }

    /// What functions say that are not `left_out`.
    pub fn without(&self, left_out: impl Fn(u32) -> bool) -> Expected {
        let others: Vec<Pair> = self.pairs.iter().filter(|pair| !left_out(pair.function)).copied().collect();
        if self.is_measured {
            return line(&others, self.unknown.scatter, self.unknown);
        }
        let mut expected = self.unknown;
        // Each is needed for the other.
        for _ in 0..3 {
            expected = line(&others, expected.scatter, self.unknown);
            expected.scatter = [(0, USER), (1, KERNEL)].map(|(kernel, (_, range))| {
                let of = others.iter().filter(|pair| usize::from(pair.is_kernel) == kernel);
                let middle = expected.ratio.ln();
                let away: Vec<(f64, f64)> = of.map(|pair| (pair.ratio - middle, pair.variance)).collect();
                scatter(&away, self.unknown.scatter[kernel].sqrt(), range)
            });
        }
        line(&others, expected.scatter, self.unknown)
    }

    fn without_one(&self, pair: &Pair) -> Expected {
        let error = pair.variance + self.all.scatter(pair.is_kernel);
        if (pair.ratio - self.all.ratio.ln()).powi(2) > OUT_OF_LINE.powi(2) * error {
            return self.without(|function| function == pair.function);
        }
        let others = self.pairs.iter().filter(|other| other.function != pair.function);
        line(&others.copied().collect::<Vec<_>>(), self.all.scatter, self.unknown)
    }
}

/// Functions that say something, those that know best: `of` gives what of them is to be compared, whose weights are to be multiplied by
/// `factors`; their samples vary by as much more than by chance.
fn pairs(
    functions: &[Cost],
    varies: &[f64],
    factors: [f64; 2],
    of: impl Fn(&[Vec<Sum>; 2]) -> [Sum; 2],
) -> Vec<Pair> {
    let pair = |((function, is_kernel, sums), varies): (&Cost, &f64)| {
        let sums = of(sums);
        let [base, new] = sums.map(|sum| sum.draws());
        (base.min(new) >= TELLING).then(|| Pair {
            function: *function,
            is_kernel: *is_kernel,
            ratio: (sums[1].weight * factors[1] / (sums[0].weight * factors[0])).ln(),
            variance: varies * (1.0 / base + 1.0 / new),
        })
    };
    let pairs = functions.iter().zip(varies).filter_map(pair);
    let mut pairs: Vec<Pair> = pairs.filter(|pair| pair.ratio.is_finite()).collect();
    pairs.sort_by(|one, other| one.variance.total_cmp(&other.variance));
    pairs.truncate(MOST);
    pairs
}

/// What a side's weights are multiplied by for its mean value.
fn mean_factor(runs: &[Run]) -> f64 {
    let runs_count = runs.len().max(1) as f64;
    runs.iter().map(|run| run.factor).sum::<f64>() / (runs_count * runs_count)
}

/// The ratio that functions have in common which scatter so.
fn line(pairs: &[Pair], scatter: [f64; 2], unknown: Expected) -> Expected {
    let variance = |pair: &Pair| pair.variance + scatter[usize::from(pair.is_kernel)];
    let mut told: Vec<(f64, f64)> = pairs.iter().map(|pair| (pair.ratio, variance(pair))).collect();
    // Nothing else known, runs differ by this.
    told.push((unknown.ratio.ln(), unknown.variance));
    let mut middle = median(&mut told);
    for _ in 0..20 {
        let weights = told.iter().map(|&(ratio, variance)| {
            let away = (ratio - middle).abs() / variance.sqrt();
            (ratio, (PULL / away).min(1.0) / variance)
        });
        let (sum, weight) =
            weights.fold((0.0, 0.0), |(sum, all), (ratio, weight)| (sum + ratio * weight, all + weight));
        middle = sum / weight;
    }
    let weight: f64 = told.iter().map(|&(_, variance)| 1.0 / variance).sum();
    let most = unknown.most;
    Expected { ratio: middle.clamp(-most, most).exp(), variance: 1.0 / weight, scatter, most }
}

/// See [`Speed::varies`].
fn varies(sums: &[Sum], wholes: &[Sum], usual: Option<f64>) -> f64 {
    dispersion(sums, wholes, usual).unwrap_or(OVERDISPERSION)
}

/// By how much more than by chance the functions' samples vary, all together.
fn usual(functions: &[Cost], wholes: &[Sum]) -> Option<f64> {
    let own = |sums: &[Vec<Sum>; 2]| {
        let sums = sums.concat();
        dispersion(&sums, wholes, None).map(|varies| (varies, sums.iter().sum::<Sum>().draws()))
    };
    let all: Option<Vec<(f64, f64)>> = functions.iter().map(|(.., sums)| own(sums)).collect();
    let mut all = all.filter(|all| !all.is_empty())?;
    for one in &mut all {
        // The median weighs by one over the root of this.
        one.1 = 1.0 / one.1.max(1.0).powi(2);
    }
    Some(median(&mut all))
}

/// The middle of values, each with the variance that it is known by: as many in sum of one over the roots of these are below as above.
fn median(values: &mut [(f64, f64)]) -> f64 {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let weight = |&(_, variance): &(f64, f64)| 1.0 / variance.sqrt();
    let half = values.iter().map(weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let reaches = values.iter().find(|value| {
        below += weight(value);
        below >= half
    });
    reaches.map_or(0.0, |value| value.0)
}

/// The variance between runs that makes deviations, each with its variance by sampling, most likely, where the usual one and its range
/// are known before: the mode over a grid.
fn scatter(deviations: &[(f64, f64)], usual: f64, range: f64) -> f64 {
    let steps = (-40..=40).map(|step| usual * range.powf(f64::from(step) / 10.0));
    let likely = |one: f64| {
        let before = -((one / usual).ln() / range.ln()).powi(2) / 2.0;
        let now = deviations.iter().map(|&(deviation, variance)| {
            let all = SCALE * (variance + one * one);
            -all.ln() / 2.0 - (TAILS + 1.0) / 2.0 * (deviation * deviation / (all * TAILS)).ln_1p()
        });
        before + now.sum::<f64>()
    };
    let best = steps.max_by(|&one, &other| likely(one).total_cmp(&likely(other)));
    best.unwrap_or(usual).powi(2)
}
