//! Rule: exceptions are raised and caught repeatedly.

use crate::advice::code::{CodeRule, GainModel, Names, Rule, at_least};

const FUNCTIONS: Names = Names {
    whole: &[
        "PyErr_SetObject",
        "_PyErr_SetObject",
        "PyErr_SetString",
        "PyErr_Format",
        "_PyErr_FormatV",
        "PyTraceBack_Here",
        "_PyErr_SetKeyError",
        "PyErr_NormalizeException",
        "_PyErr_NormalizeException",
        "BaseException_new",
        "BaseException_init",
        "raise_exception",
        "do_raise",
        "tb_dealloc",
        "format_exc_check_arg",
        "_PyErr_CreateException",
    ],
    begin: &[],
};

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "exceptions",
        claim: "raises and catches exceptions",
        pattern: "exceptions are made, with their messages and tracebacks, and caught again",
        threshold: at_least(LEAST),
        remedy: "ask before: dict.get, str.partition, isdigit; return a value instead of raising",
        bound: "making and unwinding of exceptions",
        source: "measured on CPython 3.11: 83 ns and the message, dict.get 16 ns",
    };
    CodeRule {
        gain: GainModel::Lines { least: 0.6, most: 1.0, callers: 1.0 },
        ..CodeRule::new(rule, LEAST, |code| {
            let is_raise = |node| code.is_own_line(node, |file, line| code.sources().is_raise(file, line));
            let raises = code.named(&FUNCTIONS);
            let spent = code.below(|node| raises[code.symbol(node).index()] || is_raise(node));
            // Avoiding the exception also avoids the call that raises it.
            let lines = code.calling_lines(&spent).cost;
            spent.with_lines(lines)
        })
    }
}
