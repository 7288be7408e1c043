//! Rule: each character of a string is looked up in a set by a function call.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[],
    begin: &[
        "std::basic_string_view<…>::find_first_of",
        "std::basic_string_view<…>::find_first_not_of",
        "std::basic_string_view<…>::find_last_of",
        "std::basic_string_view<…>::find_last_not_of",
        "std::__cxx11::basic_string<…>::find_first_of",
        "std::__cxx11::basic_string<…>::find_first_not_of",
        "std::__cxx11::basic_string<…>::find_last_of",
        "std::__cxx11::basic_string<…>::find_last_not_of",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "character-sets",
        claim: "looks up each character in a set",
        pattern: "strings are searched for one of several characters: each of theirs is looked for in the set by a call of memchr",
        threshold: "at least 10% of processor time",
        remedy: "a loop that compares each character itself, or by a table of 256 flags; find() where the set is one character",
        bound: "these searches",
        source: "libstdc++, bits/string_view.tcc: find_first_of calls traits::find for each character; measured: a loop takes a third",
    },
    gain: GainModel::Parts { least: 0.4, most: 0.9, callers: 0.0 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
