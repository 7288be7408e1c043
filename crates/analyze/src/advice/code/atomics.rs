//! Rule: a function's time is in atomic instructions.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::annotate::InstructionKind;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "atomics",
        claim: "waits for atomic instructions",
        pattern: "a function's time is in atomic instructions: each holds up what comes after it, and its cache line moves between \
                  processors",
        threshold: "a fifth of a function that has 5% of processor time, and at least 2% of all",
        remedy: "count in each thread and add up at the end, do several steps by one atomic instruction, put variables that different \
                 threads write into different cache lines",
        bound: "these instructions",
        source: "Intel's optimization manual, locked instructions: they are serializing for memory, and dearer when the line is shared",
    },
    gain: GainModel::Parts { least: 0.5, most: 1.0, callers: 0.0 },
    extent: Extent::Instructions,
    least_percent: 2.0,
    find: |code| code.instructions(20.0, |class, _| class.kind == InstructionKind::Lock),
};
