//! Functions compared before and after a change of a running service, whose load varies: by the windows of a continuous profile.
//!
//! The load is taken from the functions themselves: most cost the same as before, so the load's change is where their changes are closest together. How far a function may
//! be from it by chance follows from its ratio to the rest of the service in the same windows, as what varies with the load varies in both (a ratio
//! estimator: Cochran, Sampling Techniques, 1977, chapter 6).

use std::collections::HashMap;

use super::fdr::corrected;
use super::student::{exceeded, two_sided, welch};
use crate::innermost::innermost;

/// Fewest windows of a side.
pub const LEAST_WINDOWS: usize = 8;
/// Expected share of false ones among all changes.
const LEVEL: f64 = 0.01;
/// Smallest change that is worth a mention.
const LEAST_CHANGE: f64 = 0.10;
/// Smallest share of one side's values for a function to be compared, and the largest: beyond it a rest is missing.
const SHARES: [f64; 2] = [0.01, 0.95];
/// Largest distance from the median of functions that count as unchanged, in half interquartile ranges: 2.5 standard deviations of a normal
/// distribution.
const NEAR: f64 = 3.7;

/// Sums over the windows of a side.
#[derive(Clone, Debug, Default)]
pub struct WindowSums {
    windows: usize,
    whole: f64,
    whole_squared: f64,
    functions: HashMap<u32, FunctionSums>,
    /// Values of functions without their callees.
    own: HashMap<u32, f64>,
    /// Smallest value of a function in a window, which is that of a few samples.
    least: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FunctionSums {
    value: f64,
    squared: f64,
    with_whole: f64,
}

impl WindowSums {
    /// Adds a window: its value, and those of functions with their callees. Each is given once.
    pub fn add(&mut self, whole: f64, functions: impl IntoIterator<Item = (u32, f64)>) {
        self.windows += 1;
        self.whole += whole;
        self.whole_squared += whole * whole;
        for (function, value) in functions {
            if value > 0.0 {
                self.least = Some(self.least.map_or(value, |least| least.min(value)));
            }
            let sums = self.functions.entry(function).or_default();
            sums.value += value;
            sums.squared += value * value;
            sums.with_whole += value * whole;
        }
    }

    /// Adds the value of a function without its callees, in any window.
    pub fn add_own(&mut self, function: u32, value: f64) {
        *self.own.entry(function).or_default() += value;
    }

    /// Mean value of a window.
    pub fn mean_whole(&self) -> f64 {
        self.whole / self.windows.max(1) as f64
    }

    fn mean(&self, function: u32) -> f64 {
        self.of(function).value / self.windows.max(1) as f64
    }

    fn of(&self, function: u32) -> FunctionSums {
        self.functions.get(&function).copied().unwrap_or_default()
    }

    fn share(&self, function: u32) -> f64 {
        self.of(function).value / self.whole.max(f64::MIN_POSITIVE)
    }

    /// Logarithm of a function's ratio to the rest, and its variance. A function without a value is taken to have just missed its first sample. `None`: there
    /// is no rest.
    fn ratio(&self, function: u32) -> Option<(f64, f64)> {
        let FunctionSums { value, squared, with_whole } = self.of(function);
        let rest = self.whole - value;
        if value <= 0.0 && rest > 0.0 {
            return Some(((self.least? / rest).ln(), 1.0));
        }
        let ratio = value / rest;
        if value <= 0.0 || rest <= 0.0 {
            return None;
        }
        let rest_squared = self.whole_squared - 2.0 * with_whole + squared;
        let with_rest = with_whole - squared;
        let residuals = squared - 2.0 * ratio * with_rest + ratio * ratio * rest_squared;
        let windows = self.windows as f64;
        let variance = residuals.max(0.0) / (value * value) * windows / (windows - 1.0).max(1.0);
        Some((ratio.ln(), variance))
    }
}

/// A function that takes more than before, compared with the rest of its service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowChange {
    /// The function.
    pub function: u32,
    /// Mean values of a window before and after, with callees.
    pub means: [f64; 2],
    /// Factor beside that of the load, and its 95% interval.
    pub times: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl WindowChange {
    fn more(&self) -> f64 {
        self.means[1] - self.means[0]
    }
}

/// A function's change, as a logarithm, and its weight: what it has on both sides.
type OwnChange = (f64, f64);

/// Logarithm of the change of the load, and its variance: the mean of the functions' changes around the middle of the shortest interval that has half of them,
/// by weight. Unlike the median it is not pulled by those that changed, all in one direction (the shorth and a step from it: Andrews and others, Robust
/// Estimates of Location, 1972).
fn load(before: &WindowSums, after: &WindowSums) -> (f64, f64) {
    let change = |(function, old): (&u32, &f64)| {
        let (old, new) = (old / before.windows as f64, after.own.get(function)? / after.windows as f64);
        (old > 0.0 && new > 0.0).then(|| ((new / old).ln(), old.min(new)))
    };
    let mut changes: Vec<OwnChange> = before.own.iter().filter_map(change).collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = shortest_half(&changes);
    let (Some(low), Some(high)) = (half.first(), half.last()) else { return (0.0, 0.0) };
    let middle = (low.0 + high.0) / 2.0;
    let near: Vec<OwnChange> =
        changes.iter().filter(|(one, _)| (one - middle).abs() <= NEAR * (high.0 - middle)).copied().collect();
    let weights: f64 = near.iter().map(|(_, weight)| weight).sum();
    let mean = near.iter().map(|(change, weight)| change * weight).sum::<f64>() / weights;
    let squares: f64 = near.iter().map(|(change, weight)| (weight * (change - mean)).powi(2)).sum();
    (mean, squares / (weights * weights))
}

/// The shortest run of sorted changes that has half of the weight.
fn shortest_half(changes: &[OwnChange]) -> &[OwnChange] {
    let part = changes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let (mut last, mut weight) = (0, 0.0);
    let mut shortest: Option<(f64, &[OwnChange])> = None;
    for (first, (low, own)) in changes.iter().enumerate() {
        while weight < part && last < changes.len() {
            weight += changes[last].1;
            last += 1;
        }
        if weight < part {
            break;
        }
        let inside = &changes[first..last];
        let length = inside.last().map_or(0.0, |(high, _)| high - low);
        if shortest.is_none_or(|(least, _)| length < least) {
            shortest = Some((length, inside));
        }
        weight -= own;
    }
    shortest.map_or(&[], |(_, inside)| inside)
}

/// Functions that take more after a change than before, of which 1% are expected to be there by chance: largest differences first.
/// Empty if a side has fewer than [`LEAST_WINDOWS`] windows.
pub fn dearer(before: &WindowSums, after: &WindowSums) -> Vec<WindowChange> {
    let sides = [before, after];
    if sides.iter().any(|side| side.windows < LEAST_WINDOWS) {
        return Vec::new();
    }
    let (mut tested, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let freedoms = sides.map(|side| side.windows as f64 - 1.0);
    let (load, of_load) = load(before, after);
    let mut functions: Vec<u32> = before.functions.keys().chain(after.functions.keys()).copied().collect();
    functions.sort_unstable();
    functions.dedup();
    for function in functions {
        // Of a side, as one may have many more windows than the other.
        let share = before.share(function).max(after.share(function));
        let ratios = (before.ratio(function), after.ratio(function));
        let (Some(old), Some(new)) = ratios else { continue };
        if !(SHARES[0]..=SHARES[1]).contains(&share) {
            continue;
        }
        let means = sides.map(|side| side.mean(function));
        let least = sides.map(|side| side.least.unwrap_or(0.0) / side.windows as f64);
        let log = (means[1].max(least[1]) / means[0].max(least[0])).ln() - load;
        let error = (old.1 + new.1 + of_load).sqrt();
        let freedom = welch([old.1, new.1], freedoms).max(freedoms[0].min(freedoms[1]));
        let margin = exceeded(0.05, freedom) * error;
        values.push(two_sided(log / error.max(f64::MIN_POSITIVE), freedom));
        weights.push(share);
        tested.push(WindowChange {
            function,
            means,
            times: log.exp(),
            low: (log - margin).exp(),
            high: (log + margin).exp(),
        });
    }
    let corrected = corrected(&values, &weights);
    let is_dearer = |one: &WindowChange| one.times >= 1.0 + LEAST_CHANGE && one.more() > 0.0;
    let mut found: Vec<WindowChange> = tested
        .into_iter()
        .zip(corrected)
        .filter(|(one, p)| *p <= LEVEL && is_dearer(one))
        .map(|(one, _)| one)
        .collect();
    found.sort_by(|one, other| other.more().total_cmp(&one.more()));
    found
}

/// The function that a difference comes from, and the next one, which calls it.
pub fn origin(dearer: &[WindowChange]) -> Option<(WindowChange, Option<WindowChange>)> {
    innermost(dearer, |one| [one.more(), one.means[1]], |_| true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::numbers::Numbers;

    /// Windows of a service with functions below `main` (0), whose load goes up and down. The first costs `times` as much, the last `other` times.
    fn side(numbers: &mut Numbers, windows: usize, load: f64, [times, other]: [f64; 2]) -> WindowSums {
        let mut sums = WindowSums::default();
        for window in 0..windows {
            let load = load * (1.5 + (window as f64 / 7.0).sin());
            let mut value = |part: f64| numbers.normal(part * load, (part * load).sqrt()).max(0.0);
            let mut functions: Vec<(u32, f64)> = (2..=20).map(|function| (function, value(40.0))).collect();
            functions.push((1, value(300.0 * times)));
            functions.push((21, value(200.0 * other)));
            functions.iter().for_each(|&(function, value)| sums.add_own(function, value));
            let whole = functions.iter().map(|(_, value)| value).sum();
            functions.push((0, whole));
            sums.add(whole, functions);
        }
        sums
    }

    #[test]
    fn a_dearer_function_is_named_whatever_the_load_does() {
        let mut numbers = Numbers(1);
        for load in [0.5, 1.0, 3.0] {
            let sides = [side(&mut numbers, 40, 1.0, [1.0; 2]), side(&mut numbers, 40, load, [1.38, 1.0])];
            let found = dearer(&sides[0], &sides[1]);
            if load < 1.0 {
                assert_eq!(found, [], "it takes less than before");
                continue;
            }
            let (one, caller) = origin(&found).unwrap();
            assert_eq!((one.function, caller), (1, None), "{found:?}");
            assert!((1.3..1.46).contains(&one.times) && one.low < 1.38 && one.high > 1.38, "{one:?}");
        }
    }

    #[test]
    fn of_a_thousand_services_without_a_change_few_have_one() {
        let mut numbers = Numbers(7);
        let named = (0..1000).filter(|_| {
            let load = 0.5 + 2.0 * numbers.next();
            // Another function may have become cheaper.
            let other = if numbers.next() < 0.5 { 1.0 } else { 0.3 };
            let sides = [side(&mut numbers, 20, 1.0, [1.0; 2]), side(&mut numbers, 12, load, [1.0, other])];
            !dearer(&sides[0], &sides[1]).is_empty()
        });
        let named = named.count();
        assert!(named <= 20, "{named}");
    }

    #[test]
    fn a_new_function_is_named_however_many_windows_are_without_it() {
        let mut numbers = Numbers(11);
        let (before, mut after) = (side(&mut numbers, 200, 1.0, [1.0; 2]), WindowSums::default());
        for _ in 0..LEAST_WINDOWS {
            let mut value = |part: f64| numbers.normal(part, part.sqrt());
            let functions: Vec<(u32, f64)> =
                (2..=20).map(|function| (function, value(60.0))).chain([(22, 60.0)]).collect();
            functions.iter().for_each(|&(function, value)| after.add_own(function, value));
            after.add(functions.iter().map(|(_, value)| value).sum(), functions);
        }
        let found = dearer(&before, &after);
        let (one, _) = origin(&found).unwrap();
        assert_eq!((one.function, one.means[0]), (22, 0.0), "{found:?}");
    }

    #[test]
    fn one_that_takes_half_and_gets_cheaper_makes_no_other_dearer() {
        let mut numbers = Numbers(5);
        let named = (0..300).filter(|_| {
            // The last function has a third of all.
            let sides = [side(&mut numbers, 200, 1.0, [1.0, 3.0]), side(&mut numbers, 8, 1.0, [1.0, 2.1])];
            !dearer(&sides[0], &sides[1]).is_empty()
        });
        let named = named.count();
        assert!(named <= 6, "{named}");
    }

    #[test]
    fn callees_are_named_before_their_callers() {
        let change = |function, before, after| WindowChange {
            function,
            means: [before, after],
            times: after / before,
            low: 1.0,
            high: 9.0,
        };
        let found =
            [change(1, 50.0, 71.0), change(2, 30.0, 50.0), change(3, 10.0, 28.0), change(4, 1.0, 3.0)];
        let (one, caller) = origin(&found).unwrap();
        assert_eq!((one.function, caller.unwrap().function), (3, 2));
        assert_eq!(origin(&[]), None);
    }

    #[test]
    fn few_windows_say_nothing() {
        let mut numbers = Numbers(3);
        let few = side(&mut numbers, LEAST_WINDOWS - 1, 1.0, [9.0; 2]);
        assert_eq!(dearer(&side(&mut numbers, 40, 1.0, [1.0; 2]), &few), []);
        assert_eq!(dearer(&WindowSums::default(), &WindowSums::default()), []);
    }
}
