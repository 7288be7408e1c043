//! Functions compared before and after a change of a running service, whose load varies: by the windows of a continuous profile.
//!
//! The load is taken from the functions themselves: most cost the same as before, so the median of their changes is the load's. How far a function may
//! be from it by chance follows from its ratio to the rest of the service in the same windows, as what varies with the load varies in both (a ratio
//! estimator: Cochran, Sampling Techniques, 1977, chapter 6).

use std::collections::HashMap;

use super::fdr::corrected;
use super::student::{exceeded, two_sided};
use crate::innermost::innermost;

/// Fewest windows of a side.
pub const LEAST_WINDOWS: usize = 8;
/// Expected share of false ones among all changes.
const LEVEL: f64 = 0.01;
/// Smallest change that is worth a mention.
const LEAST_CHANGE: f64 = 0.10;
/// Smallest share of both sides' values for a function to be compared, and the largest: beyond it a rest is missing.
const SHARES: [f64; 2] = [0.01, 0.95];

/// Sums over the windows of a side.
#[derive(Clone, Debug, Default)]
pub struct WindowSums {
    windows: usize,
    whole: f64,
    whole_squared: f64,
    functions: HashMap<u32, FunctionSums>,
    /// Values of functions without their callees.
    own: HashMap<u32, f64>,
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

    /// Logarithm of a function's ratio to the rest, and its variance. `None`: either is missing.
    fn ratio(&self, function: u32) -> Option<(f64, f64)> {
        let FunctionSums { value, squared, with_whole } = self.of(function);
        let rest = self.whole - value;
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

/// Logarithm of the change of the load: the median of the functions' changes, weighted by what they have on both sides.
fn load(before: &WindowSums, after: &WindowSums) -> f64 {
    let change = |(function, old): (&u32, &f64)| {
        let (old, new) = (old / before.windows as f64, after.own.get(function)? / after.windows as f64);
        (old > 0.0 && new > 0.0).then(|| ((new / old).ln(), old.min(new)))
    };
    let mut changes: Vec<(f64, f64)> = before.own.iter().filter_map(change).collect();
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = changes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let middle = changes.iter().find(|(_, weight)| {
        sum += weight;
        sum >= half
    });
    middle.map_or(0.0, |(change, _)| *change)
}

/// Functions that take more after a change than before, of which 1% are expected to be there by chance: largest differences first.
/// Empty if a side has fewer than [`LEAST_WINDOWS`] windows.
pub fn dearer(before: &WindowSums, after: &WindowSums) -> Vec<WindowChange> {
    let sides = [before, after];
    if sides.iter().any(|side| side.windows < LEAST_WINDOWS) {
        return Vec::new();
    }
    let whole = before.whole + after.whole;
    let (mut tested, mut values, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let freedom = (before.windows + after.windows - 2) as f64;
    let load = load(before, after);
    let mut functions: Vec<u32> = before.functions.keys().chain(after.functions.keys()).copied().collect();
    functions.sort_unstable();
    functions.dedup();
    for function in functions {
        let share = (before.of(function).value + after.of(function).value) / whole;
        let ratios = (before.ratio(function), after.ratio(function));
        let (Some(old), Some(new)) = ratios else { continue };
        if !(SHARES[0]..=SHARES[1]).contains(&share) {
            continue;
        }
        let means = sides.map(|side| side.mean(function));
        let (log, error) = ((means[1] / means[0]).ln() - load, (old.1 + new.1).sqrt());
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
