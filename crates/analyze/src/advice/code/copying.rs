//! Rule: CPU time goes into copying or clearing memory.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "memcpy",
        "memmove",
        "memset",
        "mempcpy",
        "bcopy",
        "bzero",
        "wmemcpy",
        "wmemset",
        "explicit_bzero",
        "__memcpy_chk",
        "__memmove_chk",
        "__memset_chk",
    ],
    begin: &["__memcpy_", "__memmove_", "__memset_", "__mempcpy_", "__wmemset_", "compiler_builtins::mem::"],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "copying",
        claim: "copies memory",
        pattern: "large or very many blocks of memory are copied or cleared",
        threshold: "at least 10% of processor time",
        remedy: "pass references, views or moves instead of copies; read in place; clear only what is used; see who copies",
        bound: "the functions that copy and clear",
        source: "Kanev et al., Profiling a warehouse-scale computer (ISCA 2015) counts memmove as part of the tax of up to 30% of cycles below applications",
    },
    gain: GainModel::Lines { least: 0.75, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 10.0,
    // Page faults during a copy do not count.
    find: |code| code.calls_without(&FUNCTIONS, &Names { whole: &[], begin: &[] }),
};
