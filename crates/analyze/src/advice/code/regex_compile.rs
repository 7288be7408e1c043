//! Rule: regular expressions are compiled repeatedly.

use super::spent::{Code, Spent};
use super::{CodeRule, GainModel, Names, Rule, at_least};
use crate::cost::Cost;

const FUNCTIONS: Names = Names {
    whole: &[
        "regcomp",
        "regfree",
        "re_compile_internal",
        "re_compile_pattern",
        "re_compile_fastmap",
        "re_compile_fastmap_iter",
        "pcre_compile",
        "pcre2_compile_8",
        "pcre2_jit_compile_8",
        "sre_compile",
        "_sre_compile_impl",
        "regexp.MustCompile",
        "regexp.Compile",
        "regexp.compile",
        "regexp/syntax.Parse",
        "regexp/syntax.Compile",
        "regexp.compileOnePass",
    ],
    begin: &[
        "std::__detail::_Compiler",
        "std::__detail::_Scanner",
        "std::__cxx11::basic_regex<…>::basic_regex",
        "std::__cxx11::basic_regex<…>::_M_compile",
        "regex_syntax::",
        "<regex_syntax::",
        "regex_automata::nfa::thompson::compiler",
        "regex_automata::meta::strategy::new",
        "regex::builders::",
        "regex::regex::string::Regex::new",
        "regex_lite::hir::",
        "re2::RE2::Init",
        "re2::Compiler::",
        "re2::Regexp::Parse",
        "boost::re_detail",
        "v8::internal::RegExpImpl::Compile",
        "v8::internal::RegExpCompiler",
        "v8::internal::RegExp::Compile",
    ],
};

/// Source files of the regex compiler in CPython: from 3.11 on, and up to 3.10.
const FILES: &[&str] = &["/re/_compiler.py", "/re/_parser.py", "/sre_compile.py", "/sre_parse.py"];

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 2.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "regex-compile",
        claim: "compiles regular expressions",
        pattern: "regular expressions are compiled while the program works",
        threshold: at_least(LEAST),
        remedy: "compile each expression once and keep it (a static, LazyLock, a cache by pattern); for fixed texts search without one",
        bound: "all compiling",
        source: "regcomp(3); the Rust crate regex's documentation: avoid compiling the same expression in a loop; \
                 measured: 2.2 us to compile a short one, 0.07 us to match it",
    };
    CodeRule { gain: GainModel::Everything { least: 0.9, callers: 1.0 }, ..CodeRule::new(rule, LEAST, find) }
}

/// Functions for tables that glibc builds when a compiled expression is first used, and frees with the expression.
const BUILT_LATER: Names = Names {
    whole: &[
        "build_trtable",
        "group_nodes_into_DFAstates",
        "re_acquire_state",
        "re_acquire_state_context",
        "create_cd_newstate",
        "create_ci_newstate",
        "transit_state",
        "re_string_allocate",
    ],
    begin: &[],
};

/// Counts those tables only if they take little time: an expression that is compiled once and used much takes far
/// longer in them than in compiling.
fn find(code: &Code<'_, '_>) -> Spent {
    let compiled = code.calls_and_scripts(&FUNCTIONS, FILES);
    let later = code.calls_of(&BUILT_LATER);
    if later.cost == Cost::default() || later.cost.weight > 2 * compiled.cost.weight {
        return compiled;
    }
    let (compiles, builds) = (code.named(&FUNCTIONS), code.named(&BUILT_LATER));
    code.below(|node| {
        let symbol = code.symbol(node).index();
        compiles[symbol] || builds[symbol] || code.is_script_in(node, FILES)
    })
}
