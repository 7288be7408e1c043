//! Rhythms: bursts of a value that come back after the same time again and again.
//!
//! Bursts that come at random are as far apart as chance has it: their distances are distributed exponentially. A rhythm is reported only if that is improbable.

/// Fewest distances that may be called regular.
const LEAST: usize = 5;
/// Share of the distances that must be near the median.
const NEAR: f64 = 0.8;
/// Largest difference of a distance near the median from it, as a part of it.
const WITHIN: f64 = 0.1;
/// Probability below which chance doesn't explain the distances.
const CHANCE: f64 = 1e-5;
/// Distance of a burst from the median of a series, in its usual deviations and as a part of the median.
const ABOVE: [f64; 2] = [5.0, 0.5];
/// Distance of a burst from the mean of a series, in the deviations that counts of samples have by chance.
const BEYOND_CHANCE: f64 = 5.0;
/// Standard deviations of a normal distribution in its median absolute deviation.
const DEVIATIONS: f64 = 1.4826;

/// Bursts that come regularly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rhythm {
    /// Median distance from the beginning of one burst to that of the next, in seconds.
    pub period: f64,
    /// The distances between which nine of ten are, in seconds.
    pub spread: [f64; 2],
    /// Number of distances near the median.
    pub near: usize,
    /// Number of distances.
    pub distances: usize,
}

/// Looks for a rhythm in the sorted beginnings of bursts, in seconds, each known to `resolution` seconds. `tries`: number of series that are looked at, of which
/// any may have one by chance.
pub fn rhythm(begins: &[f64], resolution: f64, tries: usize) -> Option<Rhythm> {
    let mut sorted: Vec<f64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let period = *sorted.get(count / 2).filter(|period| count >= LEAST && **period > 0.0)?;
    let within = (WITHIN * period).max(resolution);
    let near = sorted.iter().filter(|&&one| (one - period).abs() <= within).count();
    let mean = sorted.iter().sum::<f64>() / count as f64;
    let beyond = |distance: f64| (-distance.max(0.0) / mean).exp();
    let edge = within + resolution / 2.0;
    let by_chance = beyond(period - edge) - beyond(period + edge);
    // The median was chosen among all distances.
    let chances = at_least(near, count, by_chance) * count as f64 * tries as f64;
    let is_rhythm = near as f64 >= NEAR * count as f64 && chances <= CHANCE;
    let at = |share: f64| sorted[((count - 1) as f64 * share).round() as usize];
    is_rhythm.then(|| Rhythm { period, spread: [at(0.05), at(0.95)], near, distances: count })
}

/// Probability of at least `least` successes in `tries`, of the probability `each`, by the Chernoff bound: an upper limit.
fn at_least(least: usize, tries: usize, each: f64) -> f64 {
    let (share, each) = (least as f64 / tries as f64, each.clamp(f64::MIN_POSITIVE, 1.0));
    if share <= each {
        return 1.0;
    }
    let part = |share: f64, each: f64| if share > 0.0 { share * (share / each).ln() } else { 0.0 };
    (-(tries as f64) * (part(share, each) + part(1.0 - share, 1.0 - each))).exp()
}

/// A run of large values in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Place of the first value.
    pub first: usize,
    /// Number of values.
    pub length: usize,
    /// Sum of the values above the median of the series.
    pub excess: f64,
}

/// Bursts in a series of values at equal distances. `sample`: value of a sample, of whose number values are sums; 0: they are not sampled.
pub fn bursts(series: &[f64], sample: f64) -> Vec<Burst> {
    let median = median(series.to_vec());
    let usual = DEVIATIONS * self::median(series.iter().map(|value| (value - median).abs()).collect());
    let mean = series.iter().sum::<f64>() / series.len().max(1) as f64;
    let by_chance = mean + BEYOND_CHANCE * ((mean * sample).sqrt() + sample);
    let limit =
        (median + (ABOVE[0] * usual).max(ABOVE[1] * median)).max(if sample > 0.0 { by_chance } else { 0.0 });
    let mut found: Vec<Burst> = Vec::new();
    for (place, &value) in series.iter().enumerate().filter(|(_, value)| **value > limit) {
        let excess = value - median;
        match found.last_mut() {
            Some(last) if last.first + last.length == place => {
                last.length += 1;
                last.excess += excess;
            }
            _ => found.push(Burst { first: place, length: 1, excess }),
        }
    }
    found
}

fn median(mut values: Vec<f64>) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::numbers::Numbers;

    /// Sums of distances, each rounded down to the resolution.
    fn begins(distances: impl Iterator<Item = f64>, resolution: f64) -> Vec<f64> {
        let mut at = 0.0;
        let mut next = |distance: f64| {
            at += distance;
            (at / resolution).floor() * resolution
        };
        distances.map(&mut next).collect()
    }

    #[test]
    fn a_timer_has_a_rhythm() {
        let mut numbers = Numbers(1);
        for (period, resolution, times) in
            [(10.0, 0.1, 90), (1.0, 0.1, 40), (60.0, 15.0, 15), (3600.0, 15.0, 12)]
        {
            let jitter = 0.02 * period;
            let distances = (0..times).map(|_| period + jitter * (numbers.next() - 0.5));
            let found = rhythm(&begins(distances, resolution), resolution, 1).unwrap();
            assert!((found.period - period).abs() <= resolution + jitter, "{found:?}");
            assert!(found.spread[0] <= found.period && found.period <= found.spread[1], "{found:?}");
        }
    }

    #[test]
    fn a_burst_that_is_missed_now_and_then_does_no_harm() {
        let distances = (0..40).map(|time| if time % 8 == 0 { 20.0 } else { 10.0 });
        let found = rhythm(&begins(distances, 0.1), 0.1, 1).unwrap();
        assert_eq!((found.near, found.distances), (35, 39));
    }

    #[test]
    fn of_ten_thousand_random_sequences_none_has_a_rhythm() {
        let mut numbers = Numbers(2);
        for sequence in 0..10_000 {
            let resolution = [0.1, 1.0, 15.0][sequence % 3];
            let mean = resolution * (2.0 + 20.0 * numbers.next());
            let distances: Vec<f64> = (0..60).map(|_| -mean * (1.0 - numbers.next()).ln()).collect();
            let mut begins = begins(distances.into_iter(), resolution);
            begins.dedup();
            assert_eq!(rhythm(&begins, resolution, 1), None, "{sequence}: {begins:?}");
        }
    }

    #[test]
    fn few_bursts_have_none() {
        assert_eq!(rhythm(&[], 1.0, 1), None);
        assert_eq!(rhythm(&[0.0, 10.0, 20.0, 30.0, 40.0], 0.1, 1), None);
        assert_eq!(rhythm(&[5.0; 30], 0.1, 1), None);
    }

    #[test]
    fn bursts_are_runs_of_large_values() {
        let series = [4.0, 5.0, 4.0, 20.0, 21.0, 4.0, 5.0, 4.0, 30.0];
        let expected =
            [Burst { first: 3, length: 2, excess: 31.0 }, Burst { first: 8, length: 1, excess: 25.0 }];
        assert_eq!(bursts(&series, 0.0), expected);
        assert_eq!(bursts(&[5.0, 6.0, 5.0, 7.0, 5.0], 0.0), []);
        assert_eq!(bursts(&[], 0.0), []);
    }

    /// Whether a function is sampled in a window is chance if it is in few samples.
    #[test]
    fn rare_samples_are_no_bursts() {
        let mut numbers = Numbers(3);
        for rate in [0.05_f64, 0.3, 0.7, 2.0, 10.0] {
            let mut sampled = || {
                let (mut count, mut left) = (0.0, numbers.next());
                while left > (-rate).exp() {
                    left *= numbers.next();
                    count += 1.0;
                }
                count
            };
            let series: Vec<f64> = (0..10_000).map(|_| sampled()).collect();
            assert!(bursts(&series, 1.0).len() <= 2, "{rate}");
        }
        let job: Vec<f64> = (0..100).map(|place| if place % 10 == 3 { 50.0 } else { 0.0 }).collect();
        assert_eq!(bursts(&job, 1.0).len(), 10);
    }
}
