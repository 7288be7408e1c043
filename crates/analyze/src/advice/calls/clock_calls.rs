//! Rule: the time is read by system calls.

use super::often::Often;
use super::{CallEvent, CallRule, Rule, grouped, text};

const CALLS: &[&str] = &["clock_gettime", "gettimeofday", "time"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 1000.0;
/// Clocks that the vdso can read if the kernel's clock source allows it (clock_gettime(2)), so that no system call is
/// needed.
const FAST: [u64; 7] = [0, 1, 4, 5, 6, 7, 11];
/// Share of the cost that remains with the vdso.
const LEFT: f64 = 1.0 / 7.5;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "clock-by-syscall",
        claim: "asks for the time by system calls",
        pattern: "asking for the time enters the kernel: the vdso can't answer, for want of a clock source that user code may read",
        threshold: text(format!(
            "{} calls a second, of clocks that the vdso knows",
            grouped(LEAST_PER_SECOND)
        )),
        remedy: "look at /sys/devices/system/clocksource/clocksource0/current_clocksource: tsc or kvm-clock are fast; or keep the time for a while",
        bound: "these calls, less what the vdso takes",
        source: "vdso(7); measured: 22 ns by the vdso, 166 ns by a call",
    };
    CallRule::new(rule, CALLS, || {
        Box::new(Often::new(CALLS, LEAST_PER_SECOND).only("calls", is_fast).gain(1.0 - LEFT))
    })
}

fn is_fast(call: &CallEvent<'_>) -> bool {
    call.name != "clock_gettime" || FAST.contains(&call.arguments[0])
}
