//! Rule: a thread spins until another thread changes a variable.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "busy-wait",
        claim: "spins until another thread changes a variable",
        pattern: "a loop reads one variable again and again until another thread changes it, and does nothing else",
        threshold: "a loop with 60% of a function that has 5% of processor time: it writes nothing, all its loads read fixed places, and one of \
                    these decides whether it goes on",
        remedy: "wait on a condition variable, semaphore or futex; spin for some microseconds at most before",
        bound: "the processor time of the loop; the elapsed time stays, as what is waited for takes as long",
        source: "the loop's own code",
    },
    gain: GainModel::CpuOnly { least: 0.95, most: 1.0 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| code.loops(|cause| matches!(cause, LoopCause::BusyWait { .. })),
};
