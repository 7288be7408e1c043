//! Rule: a list is searched from its beginning, which takes time proportional to its length.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "list_contains",
        "tuplecontains",
        "deque_contains",
        "list_index",
        "list_index_impl",
        "list_count",
        "list_remove",
        "PySequence_Contains",
        "PySequence_Index",
        "_PySequence_IterSearch",
    ],
    begin: &[],
};

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "linear-search",
        claim: "searches a list from its beginning",
        pattern: "the interpreter compares one element of a list after the other to find one",
        threshold: "at least 10% of processor time",
        remedy: "keep a set or a dict beside the list and ask that; bisect where the list is sorted",
        bound: "the comparisons with all that they call",
        source: "measured on CPython 3.11: 13,300 ns in a list of 5,000, 16 ns in a set",
    },
    gain: GainModel::Lines { least: 0.9, most: 1.0, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
