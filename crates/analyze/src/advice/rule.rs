//! What a rule is and what it measures, and what rules on processes share.
//!
//! Not here: the rules.

use crate::cost::Cost;
use crate::procs::{Procs, Program};

/// Advice that could gain less than this of all processor time is not given.
pub const LEAST_PERCENT: f64 = 2.0;

/// Advice rests on at least this many samples: fewer may be chance.
pub(super) const LEAST_SAMPLES: u64 = 10;

/// A pattern, and what to do where it is found.
#[derive(Debug)]
pub struct Rule {
    /// Stable name.
    pub name: &'static str,
    /// What the user's function does, as a verb with its object: a headline's second half.
    pub claim: &'static str,
    /// What is looked for.
    pub pattern: &'static str,
    /// From where on it counts.
    pub threshold: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// What the gain is bounded by.
    pub bound: &'static str,
    /// Where the rule and its numbers come from.
    pub source: &'static str,
}

/// A rule on processes of a program.
pub(super) struct ProgramRule {
    pub(super) rule: Rule,
    pub(super) find: fn(&Procs<'_>, usize, &Program<'_>) -> Option<Found>,
}

/// What a rule measured.
pub(super) struct Found {
    pub(super) measured: Vec<Measure>,
    pub(super) bound: Cost,
}

/// A number that a rule compared with its threshold, or that says how much it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What it is of.
    pub what: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit: `ms`, `/s`, `%`, `MB`, or empty for a plain count.
    pub unit: &'static str,
}

/// A weight in nanoseconds, spread over `count` things, in milliseconds.
pub(super) fn ms_each(weight: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { weight as f64 / 1e6 / count as f64 }
}

/// Adds what is known of the memory of the program that forked.
pub(super) fn peak_memory(procs: &Procs<'_>, program: &Program<'_>, measured: &mut Vec<Measure>) {
    let parent = program.parent.map(|parent| &procs.programs[parent]);
    if let Some(bytes) = parent.and_then(|parent| parent.peak_rss_bytes) {
        measured.push(Measure { what: "peak memory of the parent", value: bytes as f64 / 1e6, unit: "MB" });
    }
}

/// Most of the forks' time went into copying page tables: no vfork and no posix_spawn does that.
pub(super) fn copies_memory(program: &Program<'_>) -> bool {
    program.copying.weight.saturating_mul(2) >= program.forking.weight
}
