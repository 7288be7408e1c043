//! What a program may be made for: that it does so is seen, whether it does more of it than it has to isn't.
//!
//! Samples tell how long a function took and not how often it was called, nor whether its result was needed. A rule of these names a cause
//! only where well-made programs don't spend such a share; below that it says what takes the time, and no more.

use super::spent::{Code, Spent};
use crate::share::Share;

/// From this share of processor time on, in percent, it is a cause: none where no share tells.
const ACTIVITIES: [(&str, Option<f64>); 17] = [
    ("allocation", Some(25.0)),
    ("attribute-lookups", Some(40.0)),
    ("copying", None),
    ("first-touch", Some(30.0)),
    ("formatting", Some(25.0)),
    ("garbage-collection", Some(25.0)),
    ("hashing", Some(50.0)),
    ("json-copy", None),
    ("locks", Some(10.0)),
    ("python-calls", Some(40.0)),
    ("python-recursion", None),
    ("random-numbers", None),
    ("sorting", None),
    ("stack-traffic", None),
    ("string-compare", Some(40.0)),
    ("string-scan", Some(80.0)),
    ("text-parsing", Some(25.0)),
];
/// Functions that are slow by what they are, however much of them is needed: they begin from the beginning, or withstand attackers.
const SLOW: [&str; 5] = ["strcat", "strncat", "core::hash::", "::advance_by", "::nth"];
/// Sorting calls the program's own code to compare.
const CALLS_BACK: &str = "sorting";

/// Whether a rule tells what takes the time, and not why.
pub(super) fn is_activity(rule: &str, share: Share, code: &Code<'_, '_>, spent: &Spent) -> bool {
    let Some((_, least)) = ACTIVITIES.iter().find(|(name, _)| *name == rule) else { return false };
    let slow: u64 = spent
        .functions
        .iter()
        .filter(|&&(frame, _)| SLOW.iter().any(|name| code.view().frame(frame).name.contains(name)))
        .map(|(_, cost)| cost.weight)
        .sum();
    let is_slow = slow.saturating_mul(2) >= spent.cost.weight;
    !is_slow && least.is_none_or(|least| share.low < least)
}

/// Whether what such a rule is about is done by code that the program has called back, of which the other knows more.
pub(super) fn is_explained_by(outer: &str, (all, part): (u64, u64)) -> bool {
    outer == CALLS_BACK && part.saturating_mul(2) >= all
}
