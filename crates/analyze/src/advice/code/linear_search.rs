//! A search goes through all elements.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel};
use crate::loops::LoopCause;

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "linear-search",
        claim: "searches element by element",
        pattern: "a loop compares one element after the other until one fits, and does nothing else",
        threshold: "a loop with 60% of a function that has 5% of processor time: it loads in order, compares, leaves upon a result, and writes nothing",
        remedy: "an index: a hash map, a sorted array and bisection; or keep the element that was found",
        bound: "the search; a look-up in an index remains",
        source: "the loop's own code",
    },
    gain: GainModel::Parts { least: 0.9, most: 1.0, callers: 0.0 },
    extent: Extent::Instructions,
    least_percent: 5.0,
    find: |code| code.loops(|cause| matches!(cause, LoopCause::LinearSearch)),
};
