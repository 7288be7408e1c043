//! Percentages with no more digits than samples justify: 12.4% of 900 samples, not 12.38%.
//!
//! All shares of a table have the same number of digits, so that their points line up. The last one is worth at most half the standard error
//! of a share of 10%: rounding then loses little compared with the sampling error. Off-CPU times are measured, not sampled. Elsewhere:
//! JSON and CSV, which have all digits.

use crate::coverage::is_off_cpu;
use crate::{Cost, Sampling, View};

/// Number of decimals of a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision {
    decimals: usize,
}

impl Precision {
    /// For figures that are not shares of samples, and for live displays.
    pub const TENTHS: Self = Self { decimals: 1 };

    /// For shares of this many independent samples.
    pub fn of_samples(samples: u64) -> Self {
        Self::of_draws(samples as f64)
    }

    /// For shares of samples that were counted already.
    pub fn of_sampling(sampling: &Sampling, part: Cost) -> Self {
        Self::of_draws(sampling.draws_of(part))
    }

    /// For shares of the samples that `view` keeps.
    pub fn of(view: &View<'_>) -> Self {
        Self::of_part(view, view.part())
    }

    /// For shares of a part of those samples.
    pub fn of_part(view: &View<'_>, part: Cost) -> Self {
        if is_off_cpu(view.profile()) {
            return Self::TENTHS;
        }
        Self::of_sampling(&Sampling::of(view), part)
    }

    /// For shares in a comparison: the precision of the side that is known less well.
    pub fn of_sides<'v, 'p: 'v>(sides: [&'v [View<'p>]; 2]) -> Self {
        let draws = sides.map(|side| {
            let each = side.iter().map(Sampling::of);
            each.map(|sampling| sampling.draws_of(sampling.whole())).sum::<f64>()
        });
        Self::of_draws(draws[0].min(draws[1]))
    }

    /// For shares of this many independent draws: the standard error of a share p is √(p(1 - p) / n), which is 30 / √n percent for 10%.
    fn of_draws(draws: f64) -> Self {
        let error = 30.0 / draws.max(f64::MIN_POSITIVE).sqrt();
        let decimals = match error / 2.0 {
            step if step >= 1.0 => 0,
            step if step >= 0.1 => 1,
            _ => 2,
        };
        Self { decimals }
    }

    /// Steps of the last digit in one percent.
    pub fn per_percent(self) -> u32 {
        10_u32.pow(self.decimals as u32)
    }

    /// A share. A positive one that would be rounded to zero is shown as less than the last digit.
    pub fn percent(self, percent: f64) -> String {
        let steps = (percent * f64::from(self.per_percent())).round();
        match steps == 0.0 && percent > 0.0 {
            true => self.least(),
            false => format!("{percent:.*}%", self.decimals),
        }
    }

    /// A share without a percent sign, for columns and intervals that have one.
    pub fn digits(self, percent: f64) -> String {
        format!("{percent:.*}", self.decimals)
    }

    /// A share given in steps; `is_some`: it is greater than zero.
    pub fn steps(self, steps: u32, is_some: bool) -> String {
        match steps == 0 && is_some {
            true => self.least(),
            false => format!("{:.*}%", self.decimals, f64::from(steps) / f64::from(self.per_percent())),
        }
    }

    fn least(self) -> String {
        format!("<{}%", 1.0 / f64::from(self.per_percent()))
    }
}

/// `part` as a percentage of `samples`, such as `99.3%`; never rounded up to 100 or down to 0.
pub fn part_of(part: u64, samples: u64) -> String {
    if samples == 0 {
        return "-".into();
    }
    let precision = Precision::of_samples(samples);
    let all = 100 * precision.per_percent();
    let steps = (part as f64 / samples as f64 * f64::from(all)).round() as u32;
    precision.steps(if part < samples { steps.min(all - 1) } else { steps }, part > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_digits_that_its_samples_carry() {
        // The square root of 0.1238 * 0.8762 / n: 3.3%, 1.1% and 0.1%.
        for (draws, text) in [(100.0, "12%"), (900.0, "12.4%"), (100_000.0, "12.38%")] {
            assert_eq!(Precision::of_draws(draws).percent(12.38), text);
        }
        assert_eq!(Precision::of_draws(0.0).percent(100.0), "100%");
    }

    #[test]
    fn parts_are_not_rounded_to_all_or_nothing() {
        assert_eq!(part_of(99_999, 100_000), "99.99%");
        assert_eq!(part_of(1, 100_000), "<0.01%");
        assert_eq!(part_of(0, 100_000), "0.00%");
        assert_eq!([part_of(999, 1000), part_of(899, 900)], ["99.9%", "99.9%"]);
        assert_eq!([part_of(5, 5), part_of(99, 100), part_of(149, 150)], ["100%", "99%", "99%"]);
        assert_eq!(part_of(0, 0), "-");
    }

    #[test]
    fn what_is_there_is_not_said_to_be_nothing() {
        let precision = Precision::of_draws(900.0);
        assert_eq!([0.04, 0.0, -0.3].map(|share| precision.percent(share)), ["<0.1%", "0.0%", "-0.3%"]);
        assert_eq!(precision.steps(0, true), "<0.1%");
        assert_eq!(precision.steps(0, false), "0.0%");
        assert_eq!(Precision::of_draws(9.0).percent(0.4), "<1%");
    }
}
