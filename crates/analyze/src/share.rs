//! Shares with confidence intervals, from the number of samples.
//!
//! Wilson's interval (1927): it stays within 0 and 100% and holds for few samples too. Samples of one run are not independent draws:
//! between runs of one program (25 of them, 268 samples each) a function's share varied by 0.80 to 1.50 times as much as with independent draws.
//! So n samples count as n / 1.5. Samples of unequal weight count as fewer, by Kish: (Σw)² / Σw².

use crate::cost::Cost;
use crate::view::View;

/// Largest measured variance of shares between runs, as a multiple of that of independent draws.
pub(crate) const OVERDISPERSION: f64 = 1.5;
/// Largest number of samples to recommend: a minute and a half of one CPU at 999 a second.
const MOST_NEEDED: f64 = 100_000.0;
/// Half width of a 95% confidence interval, in standard errors.
const Z: f64 = 1.959_963_985;

/// A share in percent, with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The estimate.
    pub percent: f64,
    /// The lower bound of the interval.
    pub low: f64,
    /// The upper bound of the interval.
    pub high: f64,
}

impl Share {
    /// Returns the share that some of all samples have, if these are independent draws; `None` without samples.
    pub fn of_samples(samples: u64, all: u64) -> Option<Self> {
        (all > 0).then(|| Self::of_draws(100.0 * samples as f64 / all as f64, all as f64))
    }

    fn of_draws(percent: f64, draws: f64) -> Self {
        let p = (percent / 100.0).clamp(0.0, 1.0);
        let scale = 1.0 + Z * Z / draws;
        let middle = (p + Z * Z / (2.0 * draws)) / scale;
        let half = Z * (p * (1.0 - p) / draws + Z * Z / (4.0 * draws * draws)).sqrt() / scale;
        let end = |value: f64| (value * 100.0).clamp(0.0, 100.0);
        Self { percent, low: end(middle - half), high: end(middle + half) }
    }
}

/// The total that shares refer to, and the number of independent draws that its samples are worth.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    whole: Cost,
    draws: f64,
}

impl Sampling {
    /// Creates it for the samples that `view` keeps.
    pub fn of(view: &View<'_>) -> Self {
        let squares: f64 = view.samples().map(|kept| (kept.sample.weight as f64).powi(2)).sum();
        let whole = view.part();
        let draws = if squares > 0.0 { (whole.weight as f64).powi(2) / squares } else { 0.0 };
        Self { whole, draws: draws / OVERDISPERSION }
    }

    /// Returns the total.
    pub fn whole(&self) -> Cost {
        self.whole
    }

    /// Returns the number of independent draws that a part's samples are worth.
    pub fn draws_of(&self, part: Cost) -> f64 {
        self.draws * part.percent_of(self.whole) / 100.0
    }

    /// Returns the share of a part.
    pub fn share(&self, part: Cost) -> Share {
        self.at(part.percent_of(self.whole))
    }

    /// Returns the total number of samples needed to distinguish two shares, in percent: with more, the interval around `percent` excludes
    /// `other`. `None`: they are equal, or too close for a realistic number of samples.
    pub fn needed(&self, percent: f64, other: f64) -> Option<u64> {
        // Wilson's interval ends at the share that is Z of its own standard errors away.
        let (end, distance) = (other / 100.0, (percent - other) / 100.0);
        let draws = Z * Z * end * (1.0 - end) / (distance * distance);
        let samples = (draws * OVERDISPERSION).ceil();
        (samples <= MOST_NEEDED).then_some(samples as u64)
    }

    /// Returns the share with its interval for a percentage of the total.
    pub(crate) fn at(&self, percent: f64) -> Share {
        match self.draws {
            draws if draws > 0.0 => Share::of_draws(percent, draws),
            _ => Share { percent, low: 0.0, high: 100.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(draws: f64) -> Sampling {
        Sampling { whole: Cost { weight: 100, samples: 100 }, draws }
    }

    #[test]
    fn intervals_are_wilsons() {
        // statsmodels.stats.proportion.proportion_confint(k, n, method="wilson")
        for (k, n, low, high) in
            [(10.0, 100.0, 5.5229, 17.4366), (0.0, 50.0, 0.0, 7.1348), (30.0, 30.0, 88.6488, 100.0)]
        {
            let share = of(n).at(k / n * 100.0);
            assert!(
                (share.low - low).abs() < 0.001 && (share.high - high).abs() < 0.001,
                "{k} of {n}: {share:?}"
            );
        }
    }

    #[test]
    fn without_samples_nothing_is_known() {
        let share = of(0.0).share(Cost::default());
        assert_eq!((share.percent, share.low, share.high), (0.0, 0.0, 100.0));
    }

    #[test]
    fn as_many_samples_as_are_needed_tell() {
        let needed = of(1.0).needed(12.0, 10.0).expect("they differ");
        let told = of(needed as f64 / OVERDISPERSION).at(12.0);
        assert!((told.low - 10.0).abs() < 0.01, "{needed} samples: {told:?}");
        assert_eq!(of(1.0).needed(10.0, 10.0), None);
        assert_eq!(of(1.0).needed(10.01, 10.0), None, "it would be 50 million");
    }
}
