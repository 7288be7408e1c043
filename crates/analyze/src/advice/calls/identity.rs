//! Rule: a process repeatedly asks for its own ids.

use super::often::Often;
use super::{CallRule, Rule};

const CALLS: &[&str] = &["getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 10_000.0;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "repeated-identity",
        claim: "asks who it is again and again",
        pattern: "a process asks for its own numbers again and again",
        threshold: "10,000 calls a second",
        remedy: "ask once and keep the answer, anew after fork",
        bound: "these calls",
        source: "measured: 128 ns each",
    },
    calls: CALLS,
    also_watched: &[],
    faults: false,
    watch: || Box::new(Often::new(CALLS, LEAST_PER_SECOND)),
};
