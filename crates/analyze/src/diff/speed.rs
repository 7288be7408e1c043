//! Speed of the runs of one side relative to the other, and the scatter of functions around it, estimated from the runs themselves.
//!
//! Most functions cost the same in both sides, except for the machine's speed at the time, sampling noise, and each function's variation between
//! runs. A function changed if it deviates from the common line of the others; it takes no part in estimating that line.

use std::collections::HashMap;

use super::change::Run;
use super::sum::{Sum, dispersion};
use crate::share::OVERDISPERSION;

/// Coefficient of variation of a run's total time: a difference below 23% between single recordings may be chance. (Measured
/// for user+sys of a program on a busy virtual machine.)
const RUN_SCATTER: f64 = 0.084;
/// Largest difference between the means of several runs, in standard deviations, that is attributed to the machine: beyond it the program
/// changed, since a single slow run shows against the others of its side. With single runs there is no such bound: a shared host made a compiler
/// take 1.56 times as long, 3.7 standard deviations.
const APART: f64 = 1.96;
/// Prior for the scatter between two runs of a user function's time relative to the others: the usual value,
/// and the factor by which it is often larger or smaller.
const USER: (f64, f64) = (0.01, 3.0);
/// Prior for the scatter of kernel functions, which also work for other processes: three quarters of those of a compiler differed by less when
/// measured on a busy machine.
const KERNEL: (f64, f64) = (0.28, 1.5);
/// Least number of samples a side for a function to take part in the estimate.
const TELLING: f64 = 25.0;
/// Largest number of functions used, those with the smallest variance.
const MOST: usize = 256;
/// Degrees of freedom of the Student's t distribution assumed for deviations: its heavy tails allow for functions that did change.
const TAILS: f64 = 4.0;
/// Ratio of that distribution's squared scale to the variance if deviations are normal after all.
const SCALE: f64 = 0.6906;
/// A function that deviates from the line by more than this many standard errors is left out of the scatter estimate when its own change is
/// tested.
const OUT_OF_LINE: f64 = 1.5;
/// Deviations beyond this many standard errors have no more influence than this one (Huber 1964).
const PULL: f64 = 1.345;

/// A function: its number, whether it is kernel code, and its cost in the recordings of each side.
pub(super) type Cost = (u32, bool, [Vec<Sum>; 2]);

/// A function with samples in both sides.
#[derive(Clone, Copy, Debug)]
struct Pair {
    function: u32,
    is_kernel: bool,
    /// Logarithm of the ratio of its times.
    ratio: f64,
    /// Sampling variance of `ratio`.
    variance: f64,
}

/// The estimate for two sides.
#[derive(Clone, Debug)]
pub(super) struct Speed {
    pairs: Vec<Pair>,
    /// Expectation without any information from functions.
    unknown: Expected,
    /// The scatter of functions was measured from several runs of a side.
    is_measured: bool,
    /// Total of all functions in each run, the base's first.
    wholes: Vec<Sum>,
    /// Usual variance of a function's samples, as a multiple of the Poisson variance.
    usual: Option<f64>,
    /// Estimate from all functions.
    all: Expected,
    but_one: HashMap<u32, Expected>,
    /// Total time of each run of a side, as a multiple of the side's mean.
    pub of_runs: [Vec<f64>; 2],
    /// Factor on the sum of a side's weights that gives its mean value.
    pub factors: [f64; 2],
}

/// The expected change of a function that did not change itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// The new time as a multiple of the base's.
    pub ratio: f64,
    /// Variance of the logarithm of `ratio`.
    pub variance: f64,
    /// Variance between sides of the logarithm of a function's own ratio: of user functions, and of kernel functions.
    scatter: [f64; 2],
    /// Largest absolute logarithm of `ratio`.
    most: f64,
}

impl Expected {
    /// The expectation without information, for means of runs: `part` is their variance relative to one run a side.
    fn unknown(part: f64) -> Self {
        let variance = 2.0 * RUN_SCATTER * RUN_SCATTER * part;
        Self {
            ratio: 1.0,
            variance,
            scatter: [USER.0 * USER.0 * part, KERNEL.0 * KERNEL.0 * part],
            most: if part < 1.0 { APART * variance.sqrt() } else { f64::INFINITY },
        }
    }

    /// Returns the variance between sides of the logarithm of a row's own ratio.
    pub fn scatter(&self, is_kernel: bool) -> f64 {
        self.scatter[usize::from(is_kernel)]
    }
}

impl Speed {
    /// Estimates the speed from functions in these runs.
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
                // A run is itself part of the mean that it deviates from.
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
            // The difference of two runs has twice the variance of one.
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

    /// Returns the variance of a row's samples in the runs, as a multiple of the Poisson variance.
    pub fn varies(&self, sums: &[Sum]) -> f64 {
        varies(sums, &self.wholes, self.usual)
    }

    /// Returns the expectation without information from functions.
    pub fn unknown(&self) -> Expected {
        self.unknown
    }

    /// Returns the estimate from all functions, except the given one.
    pub fn beside(&self, function: Option<u32>) -> Expected {
        function.and_then(|function| self.but_one.get(&function)).copied().unwrap_or(self.all)
    }

    /// Returns the estimate from the functions that are not `left_out`.
    pub fn without(&self, left_out: impl Fn(u32) -> bool) -> Expected {
        let others: Vec<Pair> = self.pairs.iter().filter(|pair| !left_out(pair.function)).copied().collect();
        if self.is_measured {
            return line(&others, self.unknown.scatter, self.unknown);
        }
        let mut expected = self.unknown;
        // Line and scatter depend on each other, so they are estimated in turns.
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

/// Returns the functions with enough samples, those with the smallest variance. `of` selects the two sums to compare, `factors` scale their
/// weights, and `varies` is each function's variance as a multiple of the Poisson variance.
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

/// Returns the factor on the sum of a side's weights that gives its mean value.
fn mean_factor(runs: &[Run]) -> f64 {
    let runs_count = runs.len().max(1) as f64;
    runs.iter().map(|run| run.factor).sum::<f64>() / (runs_count * runs_count)
}

/// Estimates the ratio that functions with this scatter have in common.
fn line(pairs: &[Pair], scatter: [f64; 2], unknown: Expected) -> Expected {
    let variance = |pair: &Pair| pair.variance + scatter[usize::from(pair.is_kernel)];
    let mut told: Vec<(f64, f64)> = pairs.iter().map(|pair| (pair.ratio, variance(pair))).collect();
    // The prior counts as one more observation.
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

/// Returns the usual variance of functions' samples, as a multiple of the Poisson variance.
fn usual(functions: &[Cost], wholes: &[Sum]) -> Option<f64> {
    let own = |sums: &[Vec<Sum>; 2]| {
        let sums = sums.concat();
        dispersion(&sums, wholes, None).map(|varies| (varies, sums.iter().sum::<Sum>().draws()))
    };
    let all: Option<Vec<(f64, f64)>> = functions.iter().map(|(.., sums)| own(sums)).collect();
    let mut all = all.filter(|all| !all.is_empty())?;
    for one in &mut all {
        // The weighted median uses one over the root of this as the weight.
        one.1 = 1.0 / one.1.max(1.0).powi(2);
    }
    Some(median(&mut all))
}

/// Returns the weighted median of values with their variances; a weight is one over the root of the variance.
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

/// Returns the most probable variance between runs given deviations with their sampling variances and a prior of `usual` times or divided by
/// `range`: the mode over a grid.
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
