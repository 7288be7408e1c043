//! Rule: a loop follows pointers whose targets are in the caches.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "dependency-chain",
        claim: "follows a chain of pointers, each load waiting for the result before it",
        pattern: "a loop follows pointers: each load waits for the one before, although its data is in the caches",
        threshold: "a loop whose chain of loads takes 1.5 times as long as its instructions, in a function with 5% of processor time",
        remedy: "an array in place of the list, so that loads needn't wait for each other; several elements in one node; several lists at a time",
        bound: "the loop, but for what its instructions take",
        source: "Agner Fog, Instruction tables: 4 to 5 cycles from a load to the next that depends on it",
    },
    gain: GainModel::Loops { least: 0.4, most: 1.25 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.loops(|cause| matches!(cause, LoopCause::CachedChase { .. })),
};
