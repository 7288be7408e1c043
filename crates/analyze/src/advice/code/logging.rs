//! Rule: CPU time goes into logging.

use super::super::Rule;
use super::{CodeRule, Extent, GainModel, Names};

const FUNCTIONS: Names = Names {
    whole: &[
        "syslog",
        "vsyslog",
        "__vsyslog_internal",
        "__syslog_chk",
        "sd_journal_print",
        "sd_journal_send",
        "g_log",
        "g_logv",
        "log.Printf",
        "log.Println",
    ],
    begin: &[
        "spdlog::",
        "log4cplus::",
        "log4cxx::",
        "google::LogMessage",
        "absl::log_internal::",
        "boost::log::",
        "log::__private_api",
        "tracing::",
        "tracing_core::",
        "tracing_subscriber::",
        "<tracing_subscriber::",
        "slog::",
        "env_logger::",
        "fern::",
    ],
};

pub(super) const RULE: CodeRule = CodeRule {
    rule: Rule {
        name: "logging",
        claim: "builds log messages",
        pattern: "log messages are made and written while the program works",
        threshold: "at least 5% of processor time",
        remedy: "log less in hot paths, check the level before arguments are made, write asynchronously",
        bound: "the logging functions with all that they call",
        source: "judgement: a log that takes 5% of the time costs more than most of its lines tell",
    },
    gain: GainModel::Parts { least: 0.8, most: 1.0, callers: 0.3 },
    extent: Extent::Calls,
    least_percent: 5.0,
    find: |code| code.calls_of(&FUNCTIONS),
};
