//! Rule: arrays are read element by element.

use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "array_subscript",
        "array_subscript_asarray",
        "PyArray_Scalar",
        "array_item",
        "array_assign_subscript",
        "array_ass_sub",
        "gentype_multiply",
        "gentype_add",
        "double_add",
        "double_multiply",
    ],
    begin: &[],
};

/// Functions that access many elements in one call, by masks and by lists of indexes.
const OF_MANY: Names = Names {
    whole: &[
        "array_boolean_subscript",
        "array_assign_boolean_subscript",
        "PyArray_MapIterNew",
        "PyArray_TakeFrom",
        "PyArray_CopyObject",
        "PyArray_AssignArray",
    ],
    begin: &["mapiter_"],
};

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "array-elements",
        claim: "reads arrays element by element",
        pattern: "elements of arrays are read and written one by one, each as an object of its own",
        threshold: "at least 15% of processor time",
        remedy: "whole arrays at a time (vectorize), or tolist() before the loop",
        bound: "access to single elements with all that it calls",
        source: "measured on CPython 3.11: 33 ns an element, of a list 12 ns, by sum() 3 ns",
    },
    gain: GainModel::Lines { least: 0.9, most: 1.0, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 15.0,
    find: |code| code.calls_without(&FUNCTIONS, &OF_MANY),
};
