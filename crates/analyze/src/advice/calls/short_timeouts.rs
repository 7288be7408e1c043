//! Rule: a thread wakes up by a short timeout, finds nothing, and waits again.
//!
//! Elsewhere: pure sleeps (`short_sleep`), and polls that do not wait (`epoll_spin`).

use super::sleep_under_lock::is_sleep;
use super::{Basis, CallEvent, CallRule, Found, Rule, Watch, part, percent, rate, text};

const CALLS: &[&str] =
    &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6", "futex"];
/// Minimum number of such waits per second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Minimum share of such waits among these calls.
const LEAST_EMPTY: f64 = 0.5;
/// Duration of such a wait, in nanoseconds.
const SHORT_NS: std::ops::Range<u64> = 20_000..5_500_000;
/// Result of a futex wait that timed out (errno(3)).
const ETIMEDOUT: i64 = -110;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "short-timeouts",
        claim: "wakes by a short timeout again and again and finds nothing",
        pattern: "events are waited for with a timeout of a few milliseconds, and mostly there are none",
        threshold: text(format!(
            "{LEAST_PER_SECOND} waits a second of less than {} ms that time out, {} of all such calls",
            SHORT_NS.end as f64 / 1e6,
            part(LEAST_EMPTY)
        )),
        remedy: "a longer timeout, or none: the call returns as soon as there is something; what else is looked at can wake it too (eventfd, a \
                 pipe, timerfd, a condition)",
        bound: "these calls; what is done after each besides",
        source: "poll(2), epoll_wait(2); measured: 40 us of processor time for each wake",
    };
    CallRule::new(rule, CALLS, || Box::<Timeouts>::default())
}

#[derive(Default)]
struct Timeouts {
    calls: u64,
    matching: u64,
}

impl Watch for Timeouts {
    fn call(&mut self, call: &CallEvent<'_>) {
        let is_empty = call.result == if call.name == "futex" { ETIMEDOUT } else { 0 };
        // Most futex calls are not waits for events.
        self.calls += u64::from(call.name != "futex" || is_empty);
        self.matching += u64::from(is_empty && SHORT_NS.contains(&call.wall_ns) && !is_sleep(call));
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_most = self.matching as f64 >= LEAST_EMPTY * self.calls as f64;
        let cpu_ns = basis.part(CALLS, self.matching, self.calls);
        (basis.rate(self.matching) >= LEAST_PER_SECOND && is_most).then(|| Found {
            measured: vec![
                rate("waits that time out", basis.rate(self.matching)),
                percent("these calls", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
