//! Rules that detect an activity: samples show that the program does it, but not whether it does more than necessary.
//!
//! Samples show how long a function took, not how often it was called or whether its result was needed. Such a rule
//! names a cause only above the share that well-made programs spend on the activity. Below that, it only reports what
//! takes the time.

use super::spent::{Code, Spent};
use crate::share::Share;

/// Minimum share of CPU time, in percent, for an activity to be a cause; `None`: never.
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
/// Functions that are slow by design, however often they are needed: they restart from the beginning, or resist
/// attacks.
const SLOW: [&str; 5] = ["strcat", "strncat", "core::hash::", "::advance_by", "::nth"];
/// Sorting calls the program's own code for comparisons.
const CALLS_BACK: &str = "sorting";

/// Returns whether a rule reports only what takes the time, and not why.
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

/// Returns whether code that the program calls back does the work of such a rule. The other rule then explains more.
pub(super) fn is_explained_by(outer: &str, (all, part): (u64, u64)) -> bool {
    outer == CALLS_BACK && part.saturating_mul(2) >= all
}
