//! Rule: a string, bytes object, list or tuple grows piece by piece, with a copy for each piece.

use super::slices::with_freed;
use crate::advice::Rule;
use crate::advice::code::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &["unicode_concatenate", "PyUnicode_Append", "PyUnicode_Concat", "bytes_concat", "PyBytes_Concat"],
    begin: &[],
};
const OF_LISTS: Names = Names { whole: &["list_concat", "tupleconcat", "tuple_concat"], begin: &[] };

pub(in crate::advice::code) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "append-by-copy",
        claim: "copies a growing string for each piece",
        pattern: "a string grows by pieces, each of which copies all that came before, as something else still holds the old one",
        threshold: "at least 10% of processor time",
        remedy: "collect the pieces in a list and join them at the end, or write into io.StringIO or a bytearray",
        bound: "the copying with all that it calls",
        source: "measured on CPython 3.11: 3,247 ns a piece at 20,000 pieces, 17 ns with a list",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};

pub(in crate::advice::code) const LISTS: CodeRule = CodeRule {
    rule: Rule {
        name: "append-by-copy",
        claim: "copies a growing list for each piece",
        pattern: "a list or tuple grows by +, which makes a new one of all that came before",
        threshold: "at least 10% of processor time",
        remedy: "append and extend in place of +, itertools.chain in place of sum(lists, [])",
        bound: "the copying with all that it calls",
        source: "CPython: Objects/listobject.c, list_concat",
    },
    gain: GainModel::Everything { least: 0.9, callers: 0.4 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| with_freed(code, &OF_LISTS),
};
