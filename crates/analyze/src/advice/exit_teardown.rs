//! Rule: the kernel takes long to free the memory of exiting processes.

use super::{Found, Measure, ProgramRule, Rule, ms_each, text};
use crate::procs::{Part, Procs, Program};

/// Minimum share of all CPU time, in percent.
const LEAST_PERCENT: f64 = 2.0;

/// Name of the rule.
pub(super) const NAME: &str = "exit-teardown";

pub(super) fn rule() -> ProgramRule {
    let rule = Rule {
        name: NAME,
        claim: "spends its end on giving memory back",
        pattern: "page tables and pages are freed when processes end",
        threshold: text(format!("at least {LEAST_PERCENT}% of all processor time")),
        remedy: "touch less memory, map fewer files, use huge pages (fewer page tables), or end fewer processes",
        bound: "the time in exits",
        source: "measured: 85 to 96 ms for each GB in 4 KiB pages",
    };
    ProgramRule { rule, find }
}

fn find(procs: &Procs<'_>, _: usize, program: &Program<'_>) -> Option<Found> {
    let bound = program.part(Part::Exit);
    let percent = bound.percent_of(procs.whole);
    if !procs.is_time || percent < LEAST_PERCENT {
        return None;
    }
    let measured = vec![
        Measure { what: "share of exits", value: percent, unit: "%" },
        Measure { what: "each exit", value: ms_each(bound.weight, program.processes), unit: "ms" },
    ];
    Some(Found { measured, bound })
}
