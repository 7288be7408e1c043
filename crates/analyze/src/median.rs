//! The median of a few runs, with a distribution-free confidence interval.

/// A median with a confidence interval for the median of all possible runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median of the runs.
    pub value: f64,
    /// Lower bound of the interval: one of the runs.
    pub low: f64,
    /// Upper bound of the interval: one of the runs.
    pub high: f64,
    /// Confidence level of the interval, 0 to 1. With fewer than six runs even the interval from the least to the
    /// greatest does not reach 0.95.
    pub confidence: f64,
}

impl Median {
    /// Computes the median of `values`, with the narrowest interval between two of them that has this `confidence`, or the widest
    /// possible one. `None` without values.
    ///
    /// Each run is below the true median with probability one half, so the number of those below is binomial (an inverted sign test:
    /// Conover, Practical Nonparametric Statistics, 3.2). Runs must be independent.
    pub fn of(values: &[f64], confidence: f64) -> Option<Median> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (below, above) = (*sorted.get(count.checked_sub(1)? / 2)?, sorted[count / 2]);
        // From the middle outwards.
        let places = (0..count.div_ceil(2)).rev();
        let mut intervals = places.map(|place| (place, 1.0 - 2.0 * at_most(place, count)));
        let (place, confidence) = intervals
            .find(|&(_, reached)| reached >= confidence)
            .unwrap_or((0, (1.0 - 2.0 * at_most(0, count)).max(0.0)));
        let value = f64::midpoint(below, above);
        Some(Median { value, low: sorted[place], high: sorted[count - 1 - place], confidence })
    }
}

/// Returns the probability that at most `heads` of `tosses` of a coin are heads.
fn at_most(heads: usize, tosses: usize) -> f64 {
    // In logarithms, as 2^-1075 is 0 in floating point.
    let (mut term, mut sum) = (-(tosses as f64) * std::f64::consts::LN_2, 0.0);
    for toss in 0..=heads.min(tosses) {
        sum += term.exp();
        term += ((tosses - toss) as f64 / (toss + 1) as f64).ln();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        let of = |count: usize| {
            let values: Vec<f64> = (1..=count).map(|value| value as f64).collect();
            Median::of(&values, 0.95).expect("there are values")
        };
        // Table of Dixon and Massey for the median, 95%: (n, first, last). Probabilities: 1 - 2 * sum(comb(n, i)) / 2**n, in Python.
        for (count, low, high, confidence) in [
            (6, 1.0, 6.0, 0.96875),
            (9, 2.0, 8.0, 0.9609375),
            (10, 2.0, 9.0, 0.978515625),
            (20, 6.0, 15.0, 0.9586105346679688),
            (50, 18.0, 33.0, 0.9671608624357315),
        ] {
            let median = of(count);
            assert_eq!((median.low, median.high), (low, high), "{count}");
            assert!((median.confidence - confidence).abs() < 1e-9, "{count}: {}", median.confidence);
        }
        assert_eq!(of(10).value, 5.5);
    }

    #[test]
    fn few_runs_say_how_little_they_say() {
        assert_eq!(Median::of(&[], 0.95), None);
        let median = Median::of(&[3.0, 1.0, 2.0], 0.95).unwrap();
        assert_eq!((median.low, median.value, median.high, median.confidence), (1.0, 2.0, 3.0, 0.75));
        assert_eq!(Median::of(&[7.0], 0.95).unwrap().confidence, 0.0);
    }

    #[test]
    fn many_runs_do_not_underflow() {
        let values: Vec<f64> = (0..5000).map(f64::from).collect();
        let median = Median::of(&values, 0.95).unwrap();
        // Normal approximation: 1.96 * sqrt(n) / 2 runs to each side.
        assert!((median.value - median.low - 69.0).abs() < 3.0, "{median:?}");
        assert!(median.confidence >= 0.95);
    }
}
