//! Rule: signal masks are set repeatedly.

use super::often::Often;
use super::{CallRule, Rule};

const CALLS: &[&str] = &["rt_sigprocmask"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 10_000.0;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "sigmask-storm",
        claim: "changes the signal mask again and again",
        pattern: "the signal mask is set again and again: setjmp and swapcontext do, for each jump or switch",
        threshold: "10,000 calls a second",
        remedy: "_setjmp and _longjmp, or a switch of contexts that leaves the mask alone (boost.context, assembly)",
        bound: "rt_sigprocmask",
        source: "judgement; setjmp(3), swapcontext(3)",
    },
    calls: CALLS,
    also_watched: &[],
    faults: false,
    watch: || Box::new(Often::new(CALLS, LEAST_PER_SECOND)),
};
