//! Rule: lists are copied by slicing.

use crate::advice::Rule;
use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{CodeRule, Extent, GainModel, Names};
use crate::own_code::source_line;

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
        bound: "the copies, and freeing them in the same line",
        source: "CPython: Objects/listobject.c, list_slice",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| with_freed(code, &FUNCTIONS),
};

/// Functions that free lists.
const FREES: Names = Names { whole: &["list_dealloc", "tupledealloc", "tuple_dealloc"], begin: &[] };

/// Returns the cost of calls that create lists, and of freeing lists in the same lines: the previous list is freed
/// when it is replaced.
pub(super) fn with_freed(code: &Code<'_, '_>, functions: &Names) -> Spent {
    let made = code.calls_of(functions);
    let lines: Vec<_> = made.places.iter().map(|&(frame, _)| source_line(code.view(), frame)).collect();
    let (is_made, is_freed) = (code.named(functions), code.named(&FREES));
    code.below(|node| {
        let symbol = code.symbol(node).index();
        let line = || code.own().line(code.view(), code.tree().in_view(node));
        is_made[symbol] || is_freed[symbol] && line().is_some_and(|line| lines.contains(&line))
    })
}
