//! What a row cost in one recording, and how far chance may have moved that.

use plumb_profile::{Profile, Sample};

use crate::coverage::is_clock;

/// Parts of a recording, one after the other, of as many samples each.
pub(super) const BLOCKS: usize = 32;
/// No steadier than this is a function taken to be: sampling may keep step with a program, and does so otherwise in the next run.
const STEADIEST: f64 = 0.5;

/// A sum over samples, with its variance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sum {
    /// In the event's unit.
    pub weight: f64,
    /// Variance of `weight` if samples come by chance: the sum of squares of what each stands for.
    pub square: f64,
    /// Rows of the profile; several samples may be one.
    pub samples: u64,
    /// What of it was in inlined copies.
    pub inlined: f64,
    /// Samples in each part of the recording; nothing where they are added up, or have no times.
    pub blocks: [u32; BLOCKS],
}

impl Sum {
    /// Adds a sample that stands for `weight`, of which `grain` is one sample's.
    pub fn add_sample(&mut self, weight: u64, grain: f64) {
        let weight = weight as f64;
        self.weight += weight;
        self.square += weight * weight.min(grain);
        self.samples += 1;
    }

    /// How many samples of equal weight would vary as this does by chance.
    pub fn draws(&self) -> f64 {
        if self.square > 0.0 { self.weight * self.weight / self.square } else { 0.0 }
    }

    /// How far the row's samples vary between the parts of a recording of which all are `whole`: their variance, and what it would be
    /// if they came by chance. `None`: the parts aren't known.
    ///
    /// Sampling is regular, and programs do one thing for a while: the variance of a count is that of successive differences between
    /// parts (von Neumann; K. Wolter, Introduction to Variance Estimation, chapter 8), not that of drawing samples from an urn.
    fn varies(&self, whole: &Sum) -> Option<(f64, f64)> {
        let count = |blocks: &[u32; BLOCKS]| blocks.iter().map(|&one| f64::from(one)).sum::<f64>();
        let (own, all) = (count(&self.blocks), count(&whole.blocks));
        let steps = self.blocks.windows(2).map(|pair| (f64::from(pair[1]) - f64::from(pair[0])).powi(2));
        let variance = steps.sum::<f64>() / 2.0 * BLOCKS as f64 / (BLOCKS - 1) as f64;
        (all > 0.0).then(|| (variance, own * (1.0 - own / all)))
    }
}

/// How much more than by chance, or less, the samples of a row vary in recordings of which all are `wholes`; `usual`: what rows of them do.
/// `None`: the parts of a recording aren't known.
pub(super) fn dispersion(sums: &[Sum], wholes: &[Sum], usual: Option<f64>) -> Option<f64> {
    let (mut varies, mut chance) = (0.0, 0.0);
    for (sum, whole) in sums.iter().zip(wholes) {
        let (one, other) = sum.varies(whole)?;
        varies += one;
        chance += other;
    }
    let own = if chance > 0.0 { varies / chance } else { 1.0 };
    // Of few parts it is known badly: what looks steadier than usual is so by chance, in part.
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

/// The weight of a single sample of the event that `first` is of, where the profile may have added up several; infinite if it has not.
pub(super) fn grain(profile: &Profile, first: Option<&Sample>) -> f64 {
    let Some(event) = first.map(|sample| &profile.events[sample.event]) else { return f64::INFINITY };
    match (profile.strings.get(event.unit), profile.meta.frequency_hz) {
        ("samples" | "count", _) => 1.0,
        ("ns", Some(hz)) if hz > 0 && is_clock(profile.strings.get(event.name)) => 1e9 / f64::from(hz),
        _ => f64::INFINITY,
    }
}
