//! Rule: strings are measured and searched from their beginnings.
//!
//! Comparing strings is elsewhere (`string_compare`).

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "strlen",
        "strcat",
        "strncat",
        "strnlen",
        "strchr",
        "strrchr",
        "strchrnul",
        "strstr",
        "strcasestr",
        "strpbrk",
        "strspn",
        "strcspn",
        "memchr",
        "memrchr",
        "memmem",
        // Functions with which bash counts multi-byte characters.
        "mbstrlen",
        "xmbsrtowcs",
    ],
    begin: &[
        "__strlen_",
        "__strcat_",
        "__strncat_",
        "__strnlen_",
        "__strchr_",
        "__strrchr_",
        "__strchrnul_",
        "__strstr_",
        "__memchr_",
        "__memrchr_",
        "two_way_",
        "core::str::count::",
        "<core::str::iter::Chars as core::iter::traits::iterator::Iterator>::advance_by",
        "<core::str::iter::Chars as core::iter::traits::iterator::Iterator>::nth",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "string-scan",
        claim: "goes through strings from their beginnings",
        pattern: "strings are searched for their ends or for a place in them, again and again from their beginnings",
        threshold: "at least 10% of processor time",
        remedy: "keep the length or the place where it goes on (string_view, an end pointer in place of strcat, char_indices in place of nth)",
        bound: "the functions that look through strings",
        source: "strlen(3), strcat(3), Rust's Chars::nth: each call reads its string from the beginning",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
