//! The shift between two lists: the Hodges-Lehmann estimate, with the confidence interval that belongs to the Mann-Whitney
//! test.

use super::ranks::mann_whitney;

/// A shift, or a ratio, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The estimate.
    pub value: f64,
    /// Lower bound of the interval: a difference between one measurement of each list.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
    /// Actual confidence level of the interval, 0 to 1.
    pub confidence: f64,
    /// Requested confidence level.
    pub(super) wanted: f64,
}

impl Shift {
    /// Whether there are enough runs for the requested confidence level.
    pub fn is_wide_enough(&self) -> bool {
        self.confidence >= self.wanted
    }
}

/// Returns the shift of `second` against `first`; `None` without at least two measurements of each.
///
/// The estimate is the median of all pairwise differences; the interval leaves out as many of them at each end as the test allows (Hollander and
/// Wolfe, Nonparametric Statistical Methods, 4.3).
pub fn shift(first: &[f64], second: &[f64], confidence: f64) -> Option<Shift> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let mut differences: Vec<f64> =
        first.iter().flat_map(|&one| second.iter().map(move |&two| two - one)).collect();
    differences.sort_by(f64::total_cmp);
    let count = differences.len();
    let value = f64::midpoint(differences[(count - 1) / 2], differences[count / 2]);
    // p value of lists without ties of which `out` differences are on one side of 0 and the others on the other.
    let p = |out: usize| p_of(first.len(), second.len(), out);
    // Bisects for the largest number that may be left out: p grows with it.
    let (mut out, mut too_many) = (0, count.div_ceil(2));
    while out + 1 < too_many {
        let middle = usize::midpoint(out, too_many);
        if 1.0 - p(middle) >= confidence { out = middle } else { too_many = middle }
    }
    Some(Shift {
        value,
        low: differences[out],
        high: differences[count - 1 - out],
        confidence: 1.0 - p(out),
        wanted: confidence,
    })
}

/// Returns the p value of two lists of these sizes in which `small` pairs are in the opposite order to all the rest.
fn p_of(first: usize, second: usize, small: usize) -> f64 {
    // Positions of the first list in the common order, moved up by `small` in total, from the last one on.
    let mut left = small;
    let mut places: Vec<f64> = (0..first).map(|index| index as f64).collect();
    for place in places.iter_mut().rev() {
        let by = left.min(second);
        *place += by as f64;
        left -= by;
    }
    let taken: Vec<usize> = places.iter().map(|&place| place as usize).collect();
    let others: Vec<f64> =
        (0..first + second).filter(|place| !taken.contains(place)).map(|place| place as f64).collect();
    mann_whitney(&places, &others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Hollander and Wolfe, table A.6, for two lists of ten at 95%: the 24th of the 100 differences from either end.
        let first: Vec<f64> = (0..10).map(|run| f64::from(run) * 100.0).collect();
        let second: Vec<f64> = (0..10).map(|run| f64::from(run) * 101.0 + 7.0).collect();
        let mut differences: Vec<f64> =
            first.iter().flat_map(|one| second.iter().map(move |two| two - one)).collect();
        differences.sort_by(f64::total_cmp);
        let shift = shift(&first, &second, 0.95).unwrap();
        assert_eq!((shift.low, shift.high), (differences[23], differences[76]));
        // R: 1 - 2 * pwilcox(23, 10, 10)
        assert!((shift.confidence - 0.956_743_2).abs() < 1e-4, "{}", shift.confidence);
        assert!(shift.is_wide_enough());
    }

    #[test]
    fn few_runs_say_how_little_they_say() {
        let shift = shift(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], 0.95).unwrap();
        assert_eq!((shift.value, shift.low, shift.high), (1.0, -1.0, 3.0));
        assert!((shift.confidence - 0.9).abs() < 1e-9 && !shift.is_wide_enough());
        assert_eq!(super::shift(&[1.0], &[2.0, 3.0], 0.95), None);
    }
}
