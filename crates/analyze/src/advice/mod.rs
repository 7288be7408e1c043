//! Advice: a pattern found in a profile, a remedy, and an upper bound of the gain.
//!
//! A rule says its pattern, threshold, remedy and source, and finds and measures the pattern. All are in one table (`registry`), as stanzas of
//! `rules/*.toml` where names, texts and numbers are enough, as a file each where a function has to look. No rule reports less than [`LEAST_PERCENT`] of the CPU time, or relies on a
//! handful of samples.

mod calls;
mod code;
mod exit_teardown;
mod fork_then_exec;
mod fork_without_exec;
mod page;
mod registry;
mod rule;
mod sentence;
mod short_processes;
mod stanza;
#[cfg(test)]
mod tests;
mod waiting_on_cpu;

pub use calls::{Basis, CallAdvice, CallEvent, Costs, FaultEvent, Watched};
pub(crate) use code::advise_code;
pub use code::{CodeAdvice, Extent, Prediction, ScriptSources};
pub use page::page_of_rules;
pub use rule::{LEAST_PERCENT, Measure, Rule};

use crate::cost::Cost;
use crate::procs::Procs;
use registry::program_rules;
use rule::{Found, LEAST_SAMPLES, ProgramRule, copies_memory, ms_each, peak_memory};
use sentence::text;

/// A rule that applies to a program.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The rule.
    pub rule: &'static Rule,
    /// Index of the program in [`Procs::programs`].
    pub program: usize,
    /// Measured values.
    pub measured: Vec<Measure>,
    /// Upper bound of the gain.
    pub bound: Cost,
    /// Upper bound of the gain, in percent of all CPU time.
    pub bound_percent: f64,
}

impl Advice {
    /// Returns whether the advice concerns the exits of processes.
    pub(crate) fn is_of_exits(&self) -> bool {
        self.rule.name == exit_teardown::NAME
    }
}

/// Returns the rules that apply, by descending gain.
pub fn advise(procs: &Procs<'_>) -> Vec<Advice> {
    let mut found: Vec<Advice> = Vec::new();
    for ProgramRule { rule, find } in program_rules() {
        for (index, program) in procs.programs.iter().enumerate() {
            let Some(Found { measured, bound }) = find(procs, index, program) else { continue };
            let bound_percent = bound.percent_of(procs.whole);
            if bound_percent >= LEAST_PERCENT && bound.samples >= LEAST_SAMPLES {
                found.push(Advice { rule, program: index, measured, bound, bound_percent });
            }
        }
    }
    short_processes::tell_once(procs, &mut found);
    found.sort_by(|one, other| other.bound.cmp(&one.bound).then(one.program.cmp(&other.program)));
    found
}
