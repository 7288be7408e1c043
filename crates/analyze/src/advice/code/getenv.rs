//! Rule: environment variables are read repeatedly.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "getenv",
        "secure_getenv",
        "__secure_getenv",
        "__libc_secure_getenv",
        "std::env::var",
        "std::env::var_os",
        "std::env::_var",
        "std::env::_var_os",
    ],
    begin: &[],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "getenv-hot",
        claim: "looks up environment variables",
        pattern: "the environment is searched, from its beginning, each time a variable is asked for",
        threshold: "at least 2% of processor time",
        remedy: "ask once, at the start or on first use, and keep the answer in a variable",
        bound: "all calls",
        source: "getenv(3): environ is an array of strings, in no order; measured: 15 ns for one that is not there, among 30",
    },
    gain: GainModel::Parts { least: 0.85, most: 1.0, callers: 0.2 },
    extent: Extent::Calls,
    least_percent: 2.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
