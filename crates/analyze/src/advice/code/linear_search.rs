//! Rule: a search visits all elements.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};
use crate::loops::LoopCause;

/// Functions that go through a sequence until an element matches.
const SEARCHES: Names = Names {
    whole: &["std::find<…>", "std::find_if<…>", "std::any_of<…>", "lfind", "lsearch"],
    begin: &[
        "std::__find_if",
        "std::ranges::__find",
        "slices.Index",
        "slices.Contains",
        "core::slice::<impl [T]>::contains",
        "<[T] as core::slice::cmp::SliceContains>::",
        "<T as core::slice::cmp::SliceContains>::",
        "<core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::position",
        "<core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::find",
        "<core::slice::iter::Iter<T> as core::iter::traits::iterator::Iterator>::any",
        "Builtins_ArrayIncludes",
        "Builtins_ArrayIndexOf",
        "Builtins_ArrayPrototypeFind",
        "Builtins_ArrayPrototypeIncludes",
        "Builtins_ArrayPrototypeIndexOf",
    ],
};

/// Searches by functions of a language's library, including the comparisons that they call.
pub(super) const BY_CALL: CodeRule = CodeRule {
    rule: Rule {
        name: "linear-search",
        claim: "searches element by element",
        pattern: "a function of the library goes through a sequence until an element fits",
        threshold: "at least 10% of processor time in such functions, with what they call to compare",
        remedy: "an index: a hash map or set, a sorted array and bisection; or keep the element that was found",
        bound: "the search; a look-up in an index remains",
        source: "what the functions are documented to do",
    },
    gain: GainModel::Parts { least: 0.8, most: 1.0, callers: 0.5 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&SEARCHES),
};

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
