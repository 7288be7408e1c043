//! Rules: lists are copied by slicing, and grow piece by piece, with a copy for each piece.

use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{Activity, CodeRule, GainModel, Names, Rule, at_least};
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

/// Functions that make a list of two.
const SUMS: Names = Names { whole: &["list_concat", "tupleconcat", "tuple_concat"], begin: &[] };

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn slices() -> CodeRule {
    let rule = Rule {
        name: "copying",
        claim: "copies lists (slices, +)",
        pattern: "each slice and each sum of lists is a new list, with a reference to each element",
        threshold: at_least(LEAST),
        remedy: "an index that goes on in place of a list that gets shorter, collections.deque, itertools.islice; append and extend in place of +",
        bound: "the copies, and freeing them in the same line",
        source: "CPython: Objects/listobject.c, list_slice",
    };
    CodeRule {
        gain: GainModel::Everything { least: 0.9, callers: 0.4 },
        activity: Activity::below(f64::INFINITY),
        ..CodeRule::new(rule, LEAST, |code| with_freed(code, &FUNCTIONS))
    }
}

pub(in crate::advice) fn growing_list() -> CodeRule {
    let rule = Rule {
        name: "append-by-copy",
        claim: "copies a growing list for each piece",
        pattern: "a list or tuple grows by +, which makes a new one of all that came before",
        threshold: at_least(LEAST),
        remedy: "append and extend in place of +, itertools.chain in place of sum(lists, [])",
        bound: "the copying with all that it calls",
        source: "CPython: Objects/listobject.c, list_concat",
    };
    CodeRule {
        gain: GainModel::Everything { least: 0.9, callers: 0.4 },
        ..CodeRule::new(rule, LEAST, |code| with_freed(code, &SUMS))
    }
}

/// Functions that free lists.
const FREES: Names = Names { whole: &["list_dealloc", "tupledealloc", "tuple_dealloc"], begin: &[] };

/// Returns the cost of calls that create lists, and of freeing lists in the same lines: the previous list is freed
/// when it is replaced.
fn with_freed(code: &Code<'_, '_>, functions: &Names) -> Spent {
    let made = code.calls_of(functions);
    let lines: Vec<_> = made.places.iter().map(|&(frame, _)| source_line(code.view(), frame)).collect();
    let (is_made, is_freed) = (code.named(functions), code.named(&FREES));
    code.below(|node| {
        let symbol = code.symbol(node).index();
        let line = || code.own().line(code.view(), code.tree().in_view(node));
        is_made[symbol] || is_freed[symbol] && line().is_some_and(|line| lines.contains(&line))
    })
}
