//! Rule: events are polled without waiting.

use super::{Basis, CallEvent, CallRule, Found, Rule, Watch, grouped, part, percent, rate, text};

const CALLS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 1000.0;
/// Minimum share of them that find nothing.
const LEAST_EMPTY: f64 = 0.5;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "busy-polling",
        claim: "polls without waiting",
        pattern: "events are asked for with a timeout of 0, again and again, and mostly there are none",
        threshold: text(format!(
            "{} calls a second with a timeout of 0, {} of which return 0",
            grouped(LEAST_PER_SECOND),
            part(LEAST_EMPTY)
        )),
        remedy: "wait with a timeout, or own up to spinning on a processor of its own",
        bound: "these calls",
        source: "judgement; measured: 0.11 us each",
    };
    CallRule::new(rule, CALLS, || Box::<Polls>::default())
}

/// Returns whether the timeout is 0. ppoll and epoll_pwait2 have it in memory, so for these the duration decides.
fn waits_not(call: &CallEvent<'_>) -> bool {
    match call.name {
        "epoll_wait" | "epoll_pwait" => call.arguments[3] as u32 == 0,
        "poll" => call.arguments[2] as u32 == 0,
        // A null timeout means to wait forever.
        _ => call.arguments[2] != 0 && call.wall_ns < 2000,
    }
}

#[derive(Default)]
struct Polls {
    calls: u64,
    unwaiting: u64,
    matching: u64,
}

impl Watch for Polls {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let waits_not = waits_not(call);
        self.unwaiting += u64::from(waits_not);
        self.matching += u64::from(waits_not && call.result == 0);
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let cpu_ns = basis.part(CALLS, self.matching, self.calls);
        (basis.rate(self.matching) >= LEAST_PER_SECOND * LEAST_EMPTY
            && self.matching as f64 >= LEAST_EMPTY * self.unwaiting as f64)
            .then(|| Found {
                measured: vec![
                    rate("calls that wait not and find nothing", basis.rate(self.matching)),
                    percent("these calls", cpu_ns, basis.cpu_ns),
                ],
                cpu_ns,
                ..Found::default()
            })
    }
}
