//! Rule: waiting for child processes shows as CPU time. Such waits should sleep, so the program or the recording is
//! at fault.

use super::{Found, Measure, ProgramRule, Rule, text};
use crate::procs::{Procs, Program};

/// Minimum share of the elapsed time, in percent.
const LEAST_PERCENT: f64 = 5.0;

pub(super) fn rule() -> ProgramRule {
    let rule = Rule {
        name: "waiting-on-cpu",
        claim: "spins while it waits for its children",
        pattern: "processor time inside wait4 and waitid, which should sleep",
        threshold: text(format!("at least {LEAST_PERCENT}% of the elapsed time")),
        remedy: "wait without WNOHANG in a loop; if that is not it, distrust the recording: time asleep is no processor time",
        bound: "the processor time in waiting",
        source: "measured: waits that took 1.1 to 1.4 ms of processor time, and 905 ms by `strace -c`, which counts sleep",
    };
    ProgramRule { rule, find }
}

fn find(procs: &Procs<'_>, _: usize, program: &Program<'_>) -> Option<Found> {
    let percent = program.waiting.weight as f64 * 100.0 / procs.span_ns.max(1) as f64;
    if !procs.is_time || percent < LEAST_PERCENT {
        return None;
    }
    let measured = vec![Measure { what: "waiting, of the elapsed time", value: percent, unit: "%" }];
    Some(Found { measured, bound: program.waiting })
}
