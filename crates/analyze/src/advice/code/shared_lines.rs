//! Rules: threads write to the same cache line at the same time.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

const THRESHOLD: &str = "sampled addresses of an instruction in a function with 5% of processor time: at least two threads, each with a tenth \
                         of them, at the same time";
const SOURCE: &str = "measured: an addition takes 0.3 ns, on a line that another processor writes to 2.4 ns, an atomic one 5 and 18 ns";

pub(super) const FALSE_SHARING: CodeRule = CodeRule {
    rule: Rule {
        name: "false-sharing",
        claim: "writes to a cache line that other threads write to",
        pattern: "threads write to different variables that lie in one cache line, which moves between their processors at each write",
        threshold: THRESHOLD,
        remedy: "put what each thread writes into lines of its own: alignas(64), padding, a local variable that is written back at the end",
        bound: "the loop, but for what its instructions take",
        source: SOURCE,
    },
    gain: GainModel::Loops { least: 0.6, most: 1.1 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::SharedLine { same_word: false, .. })),
};

pub(super) const TRUE_SHARING: CodeRule = CodeRule {
    rule: Rule {
        name: "true-sharing",
        claim: "writes to a variable that other threads write to",
        pattern: "threads write to one variable, whose cache line moves between their processors at each write",
        threshold: THRESHOLD,
        remedy: "count in each thread and add up at the end, or write to it once for many steps",
        bound: "the loop, but for what its instructions take",
        source: SOURCE,
    },
    gain: GainModel::Loops { least: 0.6, most: 1.1 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::SharedLine { same_word: true, .. })),
};
