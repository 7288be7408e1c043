//! Rule: a loop interprets a program or a table step by step, by jumps with varying targets.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "interpreter-dispatch",
        claim: "dispatches by an indirect jump for each step (interpreter loop)",
        pattern: "a loop interprets a program or a table, step by step, by jumps whose targets differ",
        threshold: "four targets with samples that only indirect jumps lead to, and 30% of a function in these jumps and at their targets",
        remedy: "do more with each step (larger operations, operations fused), compile the program to closures or machine code, or run each step for many elements",
        bound: "the loop; what its steps compute remains",
        source: "Ertl and Gregg, The Structure and Performance of Efficient Interpreters (2003)",
    },
    gain: GainModel::Unknown,
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::Dispatch { .. })),
};
