//! A loop that sleeps and looks.

use super::often::Often;
use super::{CallEvent, CallRule, Rule};

const CALLS: &[&str] = &["nanosleep", "clock_nanosleep"];
/// From this many a second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Sleeps that end within this, in nanoseconds, were short.
const SHORT_NS: u64 = 5_500_000;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "polling-sleep",
        claim: "sleeps for short times until something has happened",
        pattern: "threads sleep for a moment, look, and sleep again",
        threshold: "100 sleeps a second of less than 5 ms",
        remedy: "wait for what is looked for: a condition variable, eventfd, inotify, timerfd; PR_SET_TIMERSLACK where short sleeps are needed",
        bound: "nanosleep, and what is done each time",
        source: "prctl(2): a sleep takes 50 us longer by default; measured: 71 us for one of 1 ns",
    },
    calls: CALLS,
    faults: false,
    watch: || Box::new(Often::new(CALLS, LEAST_PER_SECOND).only("short sleeps", is_short)),
};

fn is_short(call: &CallEvent<'_>) -> bool {
    call.result == 0 && call.wall_ns < SHORT_NS
}
