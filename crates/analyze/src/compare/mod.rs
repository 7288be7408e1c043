//! Comparison of two lists of measurements: is one larger, by how much, and could these runs have shown a difference?
//!
//! No distribution is assumed, only that runs are independent: the caller alternates between the two sides while
//! measuring. Elsewhere: measuring, and what the numbers mean.

mod figures;
mod holm;
mod ranks;
mod shift;

pub use figures::{CONFIDENCE, CommandComparison, ComparedFigure, Conclusion, SMALL_DIFFERENCE, enough_runs};
pub use holm::holm;
pub use ranks::mann_whitney;
pub use shift::{Shift, shift};

/// The result of comparing two lists of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The second side as a multiple of the first, with its confidence interval.
    pub ratio: Shift,
    /// p value: the probability of lists at least this different if both have one distribution (two-sided, exact up to 100 runs).
    pub p: f64,
    /// The smallest change, as a ratio above 1, that these runs would have detected with a power of 80%.
    pub detectable: f64,
}

/// The conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The second side takes less.
    Less,
    /// The second side takes more.
    More,
    /// Any difference is too small to matter.
    Same,
    /// These runs are inconclusive.
    CantTell,
}

/// z for a two-sided confidence of 95%, and for a power of 80%.
const Z: (f64, f64) = (1.959_964, 0.841_621);

impl Comparison {
    /// Compares positive measurements; `None` without at least two on each side, or if some are not positive.
    pub fn of(first: &[f64], second: &[f64], confidence: f64) -> Option<Self> {
        let logs = |values: &[f64]| -> Option<Vec<f64>> {
            let all = values.iter().map(|&value| (value > 0.0 && value.is_finite()).then(|| value.ln()));
            all.collect()
        };
        let (one, two) = (logs(first)?, logs(second)?);
        let differences = shift(&one, &two, confidence)?;
        let ratio = Shift {
            value: differences.value.exp(),
            low: differences.low.exp(),
            high: differences.high.exp(),
            ..differences
        };
        let half = (differences.high - differences.low) / 2.0;
        let detectable = (half * (1.0 + Z.1 / Z.0)).exp();
        Some(Self { ratio, p: mann_whitney(first, second), detectable })
    }

    /// Returns the verdict at significance level `alpha`; `p` is the p value after correction for multiple comparisons. Changes below `matters`
    /// (0.01 for 1%) count as none.
    pub fn verdict(&self, p: f64, alpha: f64, matters: f64) -> Verdict {
        let least = 1.0 - matters..1.0 + matters;
        let (low, high) = (self.ratio.low, self.ratio.high);
        if self.ratio.is_wide_enough() && least.contains(&low) && least.contains(&high) {
            return Verdict::Same;
        }
        match p <= alpha {
            true if self.ratio.value < 1.0 => Verdict::Less,
            true => Verdict::More,
            false => Verdict::CantTell,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(middle: f64, spread: f64, count: usize) -> Vec<f64> {
        (0..count)
            .map(|run| middle * (1.0 + spread * ((run * 7 % count) as f64 / count as f64 - 0.5)))
            .collect()
    }

    fn verdict(first: &[f64], second: &[f64]) -> Verdict {
        let comparison = Comparison::of(first, second, 0.95).expect("they are positive");
        comparison.verdict(comparison.p, 0.05, 0.01)
    }

    #[test]
    fn a_clear_change_is_told_and_its_size() {
        let (before, after) = (about(100.0, 0.04, 10), about(80.0, 0.04, 10));
        let comparison = Comparison::of(&before, &after, 0.95).unwrap();
        assert!((comparison.ratio.value - 0.8).abs() < 0.005, "{comparison:?}");
        assert!(comparison.ratio.low > 0.77 && comparison.ratio.high < 0.83, "{comparison:?}");
        assert_eq!(verdict(&before, &after), Verdict::Less);
        assert_eq!(verdict(&after, &before), Verdict::More);
    }

    #[test]
    fn noise_is_not_told_as_a_change_and_it_is_said_what_would_have_been() {
        let (one, other) = (about(100.0, 0.3, 10), about(101.0, 0.3, 10));
        assert_eq!(verdict(&one, &other), Verdict::CantTell);
        let comparison = Comparison::of(&one, &other, 0.95).unwrap();
        assert!((1.05..1.35).contains(&comparison.detectable), "{comparison:?}");
    }

    #[test]
    fn the_same_is_the_same_only_if_runs_could_have_told() {
        let steady = about(100.0, 0.004, 10);
        assert_eq!(verdict(&steady, &about(100.1, 0.004, 10)), Verdict::Same);
        // Three runs on each side cannot reach 95%.
        assert_ne!(verdict(&steady[..3], &steady[..3]), Verdict::Same);
        assert_eq!(Comparison::of(&[1.0], &[2.0], 0.95), None);
        assert_eq!(Comparison::of(&[0.0, 1.0], &[2.0, 3.0], 0.95), None);
    }
}
