//! Rule: a large process forks and its child execs, so page tables are copied only to be dropped.

use super::{Found, Measure, ProgramRule, Rule, copies_memory, ms_each, peak_memory, text};
use crate::cost::Cost;
use crate::procs::{Part, Procs, Program};

/// Minimum time per fork, in milliseconds.
const LEAST_MS: f64 = 1.0;
/// Duration of an exec without a large parent's memory to free, in milliseconds: `/bin/true` from a small process,
/// Linux 6.18.
const PLAIN_EXEC_MS: f64 = 0.11;

pub(super) fn rule() -> ProgramRule {
    let rule = Rule {
        name: "fork-then-exec",
        claim: "starts programs by fork from a large process",
        pattern: "fork copies the parent's page tables, and the child's exec drops the copy",
        threshold: text(format!(
            "at least {LEAST_MS} ms of processor time for each fork, most of it copying"
        )),
        remedy: "start programs by posix_spawn or vfork (CLONE_VM), or from a small helper process",
        bound: text(format!("the forks, and what the children's execs take beyond {PLAIN_EXEC_MS} ms each")),
        source: "posix_spawn(3): glibc uses CLONE_VM|CLONE_VFORK; measured at 500 MB resident: fork 14.7 ms and exec 16.6 ms, \
                 posix_spawn and exec 1.0 ms together",
    };
    ProgramRule { rule, find }
}

fn find(procs: &Procs<'_>, _: usize, program: &Program<'_>) -> Option<Found> {
    let fork = ms_each(program.forking.weight, program.processes);
    if !procs.is_time || program.forked || fork < LEAST_MS || !copies_memory(program) {
        return None;
    }
    let exec = program.part(Part::Exec);
    let spare = exec.weight.saturating_sub((PLAIN_EXEC_MS * 1e6 * program.processes as f64) as u64);
    let mut measured = vec![
        Measure { what: "forks", value: program.processes as f64, unit: "" },
        Measure { what: "each fork", value: fork, unit: "ms" },
        Measure { what: "each exec", value: ms_each(exec.weight, program.processes), unit: "ms" },
    ];
    peak_memory(procs, program, &mut measured);
    let mut bound = program.forking;
    bound += Cost { weight: spare, samples: 0 };
    Some(Found { measured, bound })
}
