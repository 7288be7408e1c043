//! Rule: an iteration of a loop takes far longer than its instructions, loads and dependency chains explain, and a
//! branch depends on loaded data.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "branch-miss",
        claim: "branches on data that no predictor can know (branch mispredictions)",
        pattern: "a round of a loop takes far longer than its instructions, loads and chains explain, and a branch in it depends on loaded data",
        threshold: "2.5 times the bound of its instructions and 5 cycles more, by addresses and times of samples, in a function with 5% of processor time; loads near by, no divisions, no calls",
        remedy: "compute without the branch (a mask, min and max, a conditional move), sort the data first, or do each case for all its elements",
        bound: "the loop beyond what its instructions take",
        source: "measured: a wrong prediction takes 24 cycles; bench/verdict has a program",
    },
    gain: GainModel::Loops { least: 0.7, most: 1.1 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::Mispredictions { .. })),
};
