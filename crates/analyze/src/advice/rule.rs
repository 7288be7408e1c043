//! Definition of rules and of their measurements, and helpers for rules on processes.
//!
//! The rules themselves are elsewhere.

use crate::cost::Cost;
use crate::procs::{Procs, Program};

/// Minimum gain of advice, in percent of all CPU time.
pub const LEAST_PERCENT: f64 = 2.0;

/// Minimum number of samples for advice: fewer may be chance.
pub(super) const LEAST_SAMPLES: u64 = 10;

/// A pattern and its remedy.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Stable name.
    pub name: &'static str,
    /// Activity of the user's function, as a verb with its object: the second half of a headline.
    pub claim: &'static str,
    /// Pattern that the rule looks for.
    pub pattern: &'static str,
    /// Minimum extent of the pattern.
    pub threshold: &'static str,
    /// Advice to the user.
    pub remedy: &'static str,
    /// Explanation of the upper bound of the gain.
    pub bound: &'static str,
    /// Source of the rule and its numbers.
    pub source: &'static str,
}

/// A rule on the processes of a program.
pub(super) struct ProgramRule {
    pub(super) rule: Rule,
    pub(super) find: fn(&Procs<'_>, usize, &Program<'_>) -> Option<Found>,
}

/// Result of a rule.
pub(super) struct Found {
    pub(super) measured: Vec<Measure>,
    pub(super) bound: Cost,
}

/// A number that a rule compared with its threshold, or that shows the extent of the pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Name of the measured quantity.
    pub what: &'static str,
    /// Value.
    pub value: f64,
    /// Unit: `ms`, `/s`, `%`, `MB`, or empty for a plain count.
    pub unit: &'static str,
}

/// Divides a weight in nanoseconds by `count`; returns milliseconds.
pub(super) fn ms_each(weight: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { weight as f64 / 1e6 / count as f64 }
}

/// Adds the peak memory of the program that forked, if known.
pub(super) fn peak_memory(procs: &Procs<'_>, program: &Program<'_>, measured: &mut Vec<Measure>) {
    let parent = program.parent.map(|parent| &procs.programs[parent]);
    if let Some(bytes) = parent.and_then(|parent| parent.peak_rss_bytes) {
        measured.push(Measure { what: "peak memory of the parent", value: bytes as f64 / 1e6, unit: "MB" });
    }
}

/// Returns whether most of the forks' time went into copying page tables, which vfork and posix_spawn do not do.
pub(super) fn copies_memory(program: &Program<'_>) -> bool {
    program.copying.weight.saturating_mul(2) >= program.forking.weight
}
