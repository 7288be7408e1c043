//! Rule: CPU time goes into comparing strings.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "strcmp",
        "strncmp",
        "strcasecmp",
        "strncasecmp",
        "strcoll",
        "memcmp",
        "bcmp",
        "std::string::compare",
        "std::__cxx11::basic_string<…>::compare",
        "std::char_traits<…>::compare",
        "std::operator<",
        "runtime.memequal",
        "runtime.cmpstring",
        "cmpbody",
        "memeqbody",
    ],
    begin: &[
        "__strcmp_",
        "__strncmp_",
        "__memcmp_",
        "__bcmp_",
        "__strcasecmp_",
        "__strncasecmp_",
        "__strcoll_",
        "__memcmpeq_",
        "<str as core::cmp::",
        "<[A] as core::slice::cmp::",
        "core::slice::cmp::",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "string-compare",
        claim: "compares strings",
        pattern: "strings are compared from their beginnings, as keys of ordered maps, in sorting, or one after the other",
        threshold: "at least 15% of processor time",
        remedy: "compare less: a hash map in place of an ordered map or of a search one by one (hash all of the name), numbers in place of names (interning); compare lengths first",
        bound: "the comparisons",
        source: "Knuth, The Art of Computer Programming, vol. 3, 6.2: a look-up in an ordered tree compares some log2(n) keys",
    },
    gain: GainModel::Parts { least: 0.4, most: 1.0, callers: 1.0 },
    extent: Extent::Calls,
    least_percent: 15.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
