//! Strings are measured, compared and searched byte by byte.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "strlen",
        "strnlen",
        "strcmp",
        "strncmp",
        "strcasecmp",
        "strncasecmp",
        "strchr",
        "strrchr",
        "strchrnul",
        "strstr",
        "strcasestr",
        "strpbrk",
        "strspn",
        "strcspn",
        "strcoll",
        "memcmp",
        "bcmp",
        "memchr",
        "memrchr",
        "memmem",
    ],
    begin: &[
        "__strlen_",
        "__strnlen_",
        "__strcmp_",
        "__strncmp_",
        "__strcasecmp_",
        "__strncasecmp_",
        "__strchr_",
        "__strrchr_",
        "__strchrnul_",
        "__strstr_",
        "__memcmp_",
        "__memchr_",
        "__memrchr_",
        "__memcmpeq_",
        "__strcoll_",
        "two_way_",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "string-scan",
        claim: "scans strings for their ends",
        pattern: "strings are searched for their end, compared or looked through",
        threshold: "at least 10% of processor time",
        remedy: "keep lengths (string_view, a length field), compare lengths or hashes first, intern strings or use numbers as keys",
        bound: "the functions that look through strings",
        source: "strlen(3), strcmp(3): each call reads its strings from the beginning",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 10.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
