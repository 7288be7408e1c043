//! Rule: threads yield in a loop.

use super::often::Often;
use super::{CallRule, Rule};

const CALLS: &[&str] = &["sched_yield"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 100.0;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "yield-loop",
        claim: "yields the processor in a loop",
        pattern: "threads give way in a loop until something has changed: a spin lock made of sched_yield",
        threshold: "100 calls a second",
        remedy: "wait on a futex or condition variable; where waits are very short, spin with pause and back off",
        bound: "sched_yield",
        source: "sched_yield(2): of use with real-time policies only, a broken design elsewhere; measured: 0.4 us",
    },
    calls: CALLS,
    also_watched: &[],
    faults: false,
    watch: || Box::new(Often::new(CALLS, LEAST_PER_SECOND)),
};
