//! Lists are copied by taking slices of them.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "list_slice",
        "PyList_GetSlice",
        "list_copy",
        "list_copy_impl",
        "list_concat",
        "tupleslice",
        "PyTuple_GetSlice",
    ],
    begin: &[],
};

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "copying",
        claim: "copies lists (slices, +)",
        pattern: "each slice and each sum of lists is a new list, with a reference to each element",
        threshold: "at least 10% of processor time",
        remedy: "an index that goes on in place of a list that gets shorter, collections.deque, itertools.islice; append and extend in place of +",
        bound: "the copies; that they are freed again comes on top",
        source: "CPython: Objects/listobject.c, list_slice",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
