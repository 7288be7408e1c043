//! Rule: elements are removed from or inserted at the front of an array.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "alloc::vec::Vec<…>::remove",
        "alloc::vec::Vec<…>::insert",
        "std::vector<…>::erase",
        "std::vector<…>::_M_erase",
        "std::vector<…>::_M_insert_aux",
        "slices.Delete<…>",
    ],
    begin: &["alloc::vec::Vec<…>::remove::", "slices.Delete[", "slices.Insert["],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "front-of-list",
        claim: "moves all elements of an array by one place, as one is taken from its front or put there",
        pattern: "elements are removed from an array, or inserted, far from its end: all behind are moved",
        threshold: "at least 10% of processor time",
        remedy: "a deque (VecDeque, std::deque), swap_remove where the order doesn't matter, an index that moves on, retain for many at once",
        bound: "the moving",
        source: "the documentation of Vec::remove: it shifts all elements after it to the left",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
