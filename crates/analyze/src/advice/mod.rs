//! Advice: what a profile shows, what to do about it, and what can be gained at most.
//!
//! One file holds one rule, as data: the pattern, the threshold, the remedy, where the rule comes from, and a function
//! that looks for it and measures. No rule speaks of less than [`LEAST_PERCENT`] of the processor
//! time, or from a handful of samples.

mod calls;
mod code;
mod exit_teardown;
mod fork_then_exec;
mod fork_without_exec;
mod short_processes;
mod waiting_on_cpu;

pub use calls::{Basis, CallAdvice, CallEvent, Costs, FaultEvent, Watched};
pub(crate) use code::advise_code;
pub use code::{CodeAdvice, Extent};

use crate::cost::Cost;
use crate::procs::{Procs, Program};

/// Advice that could gain less than this of all processor time is not given.
pub const LEAST_PERCENT: f64 = 2.0;

/// Advice rests on at least this many samples: fewer may be chance.
const LEAST_SAMPLES: u64 = 10;

/// A pattern, and what to do where it is found.
#[derive(Debug)]
pub struct Rule {
    /// Stable name.
    pub name: &'static str,
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
struct ProgramRule {
    rule: Rule,
    find: fn(&Procs<'_>, usize, &Program<'_>) -> Option<Found>,
}

/// What a rule measured.
struct Found {
    measured: Vec<Measure>,
    bound: Cost,
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

/// A rule that holds for a program.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The rule.
    pub rule: &'static Rule,
    /// Index of the program in [`Procs::programs`].
    pub program: usize,
    /// What was measured.
    pub measured: Vec<Measure>,
    /// The most that could be gained.
    pub bound: Cost,
    /// The same in percent of all processor time.
    pub bound_percent: f64,
}

/// All rules.
const RULES: [&ProgramRule; 5] = [
    &fork_then_exec::RULE,
    &fork_without_exec::RULE,
    &short_processes::RULE,
    &exit_teardown::RULE,
    &waiting_on_cpu::RULE,
];

/// The rules that hold, those that could gain more first.
pub fn advise(procs: &Procs<'_>) -> Vec<Advice> {
    let mut found: Vec<Advice> = Vec::new();
    for &ProgramRule { ref rule, find } in RULES {
        for (index, program) in procs.programs.iter().enumerate() {
            let Some(Found { measured, bound }) = find(procs, index, program) else { continue };
            let bound_percent = bound.percent_of(procs.whole);
            if bound_percent >= LEAST_PERCENT && bound.samples >= LEAST_SAMPLES {
                found.push(Advice { rule, program: index, measured, bound, bound_percent });
            }
        }
    }
    found.sort_by(|one, other| other.bound.cmp(&one.bound).then(one.program.cmp(&other.program)));
    found
}

/// A weight in nanoseconds, spread over `count` things, in milliseconds.
fn ms_each(weight: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { weight as f64 / 1e6 / count as f64 }
}

/// Adds what is known of the memory of the program that forked.
fn peak_memory(procs: &Procs<'_>, program: &Program<'_>, measured: &mut Vec<Measure>) {
    let parent = program.parent.map(|parent| &procs.programs[parent]);
    if let Some(bytes) = parent.and_then(|parent| parent.peak_rss_bytes) {
        measured.push(Measure { what: "peak memory of the parent", value: bytes as f64 / 1e6, unit: "MB" });
    }
}

/// Most of the forks' time went into copying page tables: no vfork and no posix_spawn does that.
fn copies_memory(program: &Program<'_>) -> bool {
    program.copying.weight.saturating_mul(2) >= program.forking.weight
}
