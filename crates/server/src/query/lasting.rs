//! The times that profiles cover. The store has when a profile begins; how long it lasts follows from when the next one of its series begins.

use std::collections::HashMap;

use plumb_store::Cancellation;

use crate::error::ApiError;

/// Fewest profiles of a series whose distances tell how long its profiles last; those of all series do for others.
const LEAST_PROFILES: usize = 4;
/// Longest time that a profile is taken to cover, in milliseconds: one that lasts longer is rare, and a gap in the recording is not.
const LONGEST: i64 = 300_000;

/// Beginnings of profiles by series, in milliseconds.
pub(crate) struct Beginnings {
    by_series: HashMap<usize, Vec<i64>>,
    /// Usual distance of each series, and of all.
    usual: HashMap<usize, i64>,
    of_all: i64,
}

impl Beginnings {
    /// The beginnings of profiles, each given as its series and its time.
    pub fn new(
        profiles: impl Iterator<Item = (usize, i64)>,
        cancellation: &Cancellation,
    ) -> Result<Self, ApiError> {
        let mut by_series: HashMap<usize, Vec<i64>> = HashMap::new();
        profiles.for_each(|(series, time)| by_series.entry(series).or_default().push(time));
        let (mut usual_of, mut all) = (HashMap::new(), Vec::new());
        for (&series, times) in &mut by_series {
            cancellation.check()?;
            times.sort_unstable();
            times.dedup();
            let mut of_series = distances(times);
            if times.len() >= LEAST_PROFILES {
                usual_of.insert(series, usual(&mut of_series));
            }
            all.extend(of_series);
        }
        Ok(Self { by_series, usual: usual_of, of_all: usual(&mut all) })
    }

    /// The end of a profile: that of its usual time, or the beginning of the next one if that is earlier.
    pub fn end(&self, series: usize, time: i64) -> i64 {
        let usual = self.usual.get(&series).copied().unwrap_or(self.of_all).min(LONGEST);
        let times = self.by_series.get(&series).map_or(&[][..], |times| times);
        let next = times.get(times.partition_point(|&one| one <= time)).copied();
        time.saturating_add(usual).min(next.unwrap_or(i64::MAX))
    }
}

/// The distances between sorted times.
pub(super) fn distances(times: &[i64]) -> Vec<i64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The median of distances; 0 without any.
pub(super) fn usual(distances: &mut [i64]) -> i64 {
    let place = distances.len() / 2;
    if distances.is_empty() { 0 } else { *distances.select_nth_unstable(place).1 }
}

/// The parts of a value that fall into steps, by the overlap of its time with each. They add up to the value.
///
/// A step covers the time after the previous one up to and including its own time; the first ends at `start`.
pub(crate) fn parts(
    (from, until): (i64, i64),
    value: i64,
    (start, step): (i64, i64),
) -> impl Iterator<Item = (i64, i64)> {
    let first = super::series::step_of(from.saturating_add(1), start, step);
    let length = i128::from(until.saturating_sub(from).max(0));
    let mut given = 0;
    let mut at = Some(if length == 0 { super::series::step_of(from, start, step) } else { first });
    std::iter::from_fn(move || {
        let end = at?;
        let is_last = end >= until || length == 0;
        let upto = match is_last {
            true => value,
            false => i64::try_from(i128::from(value) * i128::from(end - from) / length).unwrap_or(value),
        };
        at = end.checked_add(step).filter(|_| !is_last);
        Some((end, upto - std::mem::replace(&mut given, upto)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn of(from: i64, until: i64, value: i64, step: i64) -> Vec<(i64, i64)> {
        parts((from, until), value, (0, step)).collect()
    }

    #[test]
    fn a_value_is_divided_by_overlap() {
        assert_eq!(of(0, 15, 30, 5), [(5, 10), (10, 10), (15, 10)]);
        assert_eq!(of(3, 18, 15, 5), [(5, 2), (10, 5), (15, 5), (20, 3)]);
        assert_eq!(of(0, 15, 7, 60), [(60, 7)]);
        assert_eq!(of(-5, 5, 10, 10), [(0, 5), (10, 5)]);
        assert_eq!(of(10, 10, 4, 5), [(10, 4)], "a moment is in the step that it ends");
        assert_eq!(of(0, 7, 100, 3).iter().map(|(_, part)| part).sum::<i64>(), 100);
        assert_eq!(of(0, i64::MAX, i64::MAX, i64::MAX).iter().map(|(_, part)| part).sum::<i64>(), i64::MAX);
    }

    #[test]
    fn profiles_last_until_the_next_or_as_usual() {
        let none = Cancellation::default();
        let of = |times: &[(usize, i64)]| Beginnings::new(times.iter().copied(), &none).unwrap();
        let regular = of(&[(0, 0), (0, 15), (0, 30), (0, 90), (0, 100), (1, 7)]);
        let ends = [0, 15, 30, 90, 100].map(|time| regular.end(0, time));
        assert_eq!(ends, [15, 30, 45, 100, 115], "a gap isn't covered");
        assert_eq!(regular.end(1, 7), 22, "as the others");
        assert_eq!(of(&[(0, 5)]).end(0, 5), 5);
        assert_eq!(of(&[(0, 0), (0, 3_600_000)]).end(0, 0), LONGEST);
        assert_eq!(of(&[]).end(3, 9), 9);
    }
}
