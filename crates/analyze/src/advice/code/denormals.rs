//! Rule: an iteration of an arithmetic loop takes far longer than its instructions, loads and dependency chains
//! explain, and no branch depends on its data.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "denormals",
        claim: "computes with numbers so near zero that the processor needs help (denormal numbers)",
        pattern: "a round of a loop of arithmetic takes far longer than its instructions, loads and chains explain, and no branch depends on its data",
        threshold: "4 times the bound of its instructions and 60 cycles more, by addresses and times of samples, in a function with 5% of processor time; loads near by, no divisions, no calls",
        remedy: "have them taken for zero (-ffast-math when linking, or _MM_SET_FLUSH_ZERO_MODE and _MM_SET_DENORMALS_ZERO_MODE), or keep values from fading away: add a small constant, stop at a limit",
        bound: "the loop beyond what its instructions take",
        source: "Agner Fog, The microarchitecture of Intel, AMD and VIA CPUs: some 150 cycles for each on processors of Intel, few on those of AMD",
    },
    gain: GainModel::Loops { least: 0.7, most: 1.1 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.own_loops(|cause| matches!(cause, LoopCause::Assists { .. })),
};
