//! Rule: a large process forks to work on a copy of itself, for example for a snapshot.

use super::{Found, Measure, ProgramRule, Rule, copies_memory, ms_each, peak_memory, text};
use crate::procs::{Procs, Program};

/// Minimum time per fork, in milliseconds.
const LEAST_MS: f64 = 1.0;

pub(super) fn rule() -> ProgramRule {
    let rule = Rule {
        name: "fork-without-exec",
        claim: "forks processes that copy memory",
        pattern: "fork copies a large parent's page tables for a child that never execs, and both copy pages on writing",
        threshold: text(format!(
            "at least {LEAST_MS} ms of processor time for each fork, most of it copying"
        )),
        remedy: "fork early, while the parent is small; use huge pages; hold less memory in the process that forks",
        bound: "the forks, and the page faults of parent and children that copy a shared page",
        source: "Redis: latest_fork_usec, 9 to 13 ms for each GB on bare metal, 23 under KVM",
    };
    ProgramRule { rule, find }
}

fn find(procs: &Procs<'_>, _: usize, program: &Program<'_>) -> Option<Found> {
    let fork = ms_each(program.forking.weight, program.processes);
    if !procs.is_time || !program.forked || fork < LEAST_MS || !copies_memory(program) {
        return None;
    }
    let mut bound = program.forking;
    bound += program.unsharing;
    if let Some(parent) = program.parent {
        bound += procs.programs[parent].unsharing;
    }
    let copied = bound.weight.saturating_sub(program.forking.weight);
    let mut measured = vec![
        Measure { what: "forks", value: program.processes as f64, unit: "" },
        Measure { what: "each fork", value: fork, unit: "ms" },
        Measure { what: "copying shared pages", value: copied as f64 / 1e6, unit: "ms" },
    ];
    peak_memory(procs, program, &mut measured);
    Some(Found { measured, bound })
}
