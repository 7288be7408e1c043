//! Rule: a load needs bytes of a recent store, and the store does not contain all of them.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "store-forwarding",
        claim: "loads what was just stored in parts (store forwarding fails)",
        pattern: "a load takes bytes of a store shortly before it that the store does not hold all of",
        threshold: "a load whose bytes the last store to them does not hold all of, in a loop, with 30% of a function that has 5% of processor time",
        remedy: "put the parts together in a register (shifts, or), or load them with the size that they were stored with",
        bound: "the waiting; the loop takes as long as its instructions without it",
        source: "Agner Fog, Microarchitecture: a load that no store can serve waits some 12 cycles for the cache",
    },
    gain: GainModel::Loops { least: 0.75, most: 1.3 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::StoreForwarding { .. })),
};
