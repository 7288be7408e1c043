//! Rule: log messages are built by the logging module.

use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{CodeRule, GainModel, Names, Rule, at_least};

/// Functions that handle a message that is written.
const WRITTEN: Names = Names {
    whole: &["_log", "makeRecord", "handle", "callHandlers", "emit"],
    begin: &["Logger._log", "Logger.makeRecord", "Logger.handle", "Logger.callHandlers"],
};
/// If writing is less than this part of the module's time, messages are dropped.
const MOST_WRITTEN: f64 = 0.1;

/// Source files of the import machinery.
const IMPORTS: &[&str] = &["<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"];
/// Source files of the logging module.
const FILES: &[&str] = &["/logging/__init__.py", "/logging/handlers.py"];

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 10.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "logging",
        claim: "builds log messages",
        pattern: "log messages are made by code in Python, whether anybody reads them or not",
        threshold: at_least(LEAST),
        remedy: "ask logger.isEnabledFor first, give arguments to the logger instead of formatting them, log less in loops",
        bound: "the logging module with all that it calls",
        source: "measured on CPython 3.11: 680 ns for a message that is dropped, 81 ns if its arguments are not formatted",
    };
    CodeRule {
        gain: GainModel::Parts { least: 0.8, most: 1.0, callers: 0.4 },
        ..CodeRule::new(rule, LEAST, find)
    }
}

/// Returns the cost of the module and, if it drops all messages, of the lines that create them. Importing the module
/// does not count.
fn find(code: &Code<'_, '_>) -> Spent {
    let imported = code.scripts_in(IMPORTS);
    let module = code.below(|node| code.is_script_in(node, FILES) && !imported.has(node));
    let writes = code.named(&WRITTEN);
    let written = code.below(|node| writes[code.symbol(node).index()] && code.is_script_in(node, FILES));
    match written.cost.weight as f64 <= MOST_WRITTEN * module.cost.weight as f64 {
        true => code.calling_lines(&module),
        false => module,
    }
}
