//! The cost of a row in one recording, and how far chance may have moved it.

use plumb_profile::{Profile, Sample};

use crate::coverage::is_clock;

/// Number of successive parts of a recording with equal numbers of samples.
pub(super) const BLOCKS: usize = 32;
/// Least variance assumed, as a multiple of the Poisson variance: sampling may be in step with a program in one run and not in the next.
const STEADIEST: f64 = 0.5;

/// A sum over samples, with its variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    /// Sum of weights in the event's unit.
    pub weight: f64,
    /// Variance of `weight` if samples come by chance: the sum of squares of the single samples' weights.
    pub square: f64,
    /// Number of sample rows in the profile; several samples may share one.
    pub samples: u64,
    /// Part of `weight` in inlined copies.
    pub inlined: f64,
    /// Samples in each part of the recording; empty if samples are aggregated or have no times.
    pub blocks: [u32; BLOCKS],
}

impl Sum {
    /// Adds a sample of this `weight`; `grain` is the weight of a single sample, of which it may aggregate several.
    pub fn add_sample(&mut self, weight: u64, grain: f64) {
        let weight = weight as f64;
        self.weight += weight;
        self.square += weight * weight.min(grain);
        self.samples += 1;
    }

    /// Returns the effective number of samples: how many of equal weight would have this relative variance.
    pub fn draws(&self) -> f64 {
        if self.square > 0.0 { self.weight * self.weight / self.square } else { 0.0 }
    }

    /// Returns the variance of the row's samples between the parts of a recording whose total is `whole`, and the variance
    /// if they came by chance. `None`: the parts are not known.
    ///
    /// Sampling is regular, and programs have phases: the variance of a count is that of successive differences between
    /// parts (von Neumann; K. Wolter, Introduction to Variance Estimation, chapter 8), not that of drawing samples from an urn.
    fn varies(&self, whole: &Sum) -> Option<(f64, f64)> {
        let count = |blocks: &[u32; BLOCKS]| blocks.iter().map(|&one| f64::from(one)).sum::<f64>();
        let (own, all) = (count(&self.blocks), count(&whole.blocks));
        let steps = self.blocks.windows(2).map(|pair| (f64::from(pair[1]) - f64::from(pair[0])).powi(2));
        let variance = steps.sum::<f64>() / 2.0 * BLOCKS as f64 / (BLOCKS - 1) as f64;
        (all > 0.0).then(|| (variance, own * (1.0 - own / all)))
    }
}

/// Returns the variance of a row's samples as a multiple of chance, in recordings whose totals are `wholes`. `usual` is that of rows in general.
/// `None`: the parts of a recording are not known.
pub(super) fn dispersion(sums: &[Sum], wholes: &[Sum], usual: Option<f64>) -> Option<f64> {
    let (mut varies, mut chance) = (0.0, 0.0);
    for (sum, whole) in sums.iter().zip(wholes) {
        let (one, other) = sum.varies(whole)?;
        varies += one;
        chance += other;
    }
    let own = if chance > 0.0 { varies / chance } else { 1.0 };
    // With few parts this is a rough estimate: a value below the usual one is partly chance.
    let own = usual.map_or(own, |usual| own.max(f64::midpoint(own, usual)));
    Some(own.max(STEADIEST))
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.square += other.square;
        self.samples += other.samples;
        self.inlined += other.inlined;
        self.blocks.iter_mut().zip(other.blocks).for_each(|(own, other)| *own += other);
    }
}

impl<'a> std::iter::Sum<&'a Sum> for Sum {
    fn sum<I: Iterator<Item = &'a Sum>>(sums: I) -> Self {
        sums.fold(Sum::default(), |mut all, sum| {
            all += *sum;
            all
        })
    }
}

/// Returns the weight of a single sample of the event of `first`, where the profile may have aggregated several; infinite if it has not.
pub(super) fn grain(profile: &Profile, first: Option<&Sample>) -> f64 {
    let Some(event) = first.map(|sample| &profile.events[sample.event]) else { return f64::INFINITY };
    match (profile.strings.get(event.unit), profile.meta.frequency_hz) {
        ("samples" | "count", _) => 1.0,
        ("ns", Some(hz)) if hz > 0 && is_clock(profile.strings.get(event.name)) => 1e9 / f64::from(hz),
        _ => f64::INFINITY,
    }
}
