//! Rule: each wait returns only one event.

use super::{Basis, CallEvent, CallRule, Found, Measure, Rule, Watch, grouped, part, percent, rate, text};

const CALLS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 50_000.0;
/// Share of the calls that can be avoided.
const GAIN: f64 = 0.9;
/// Maximum average number of events per wait.
const FEW: f64 = 1.2;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "one-event-a-wait",
        claim: "takes one event for each wait",
        pattern: "each epoll_wait brings a single event, many times a second",
        threshold: text(format!(
            "{} calls a second that bring {FEW} events on average or fewer",
            grouped(LEAST_PER_SECOND)
        )),
        remedy: "ask for 64 events or more at once, use EPOLLET, read until EAGAIN before the next wait, or io_uring",
        bound: text(format!("{} of epoll_wait", part(GAIN))),
        source: "judgement; measured: 0.11 us for a wait of no time",
    };
    CallRule::new(rule, CALLS, || Box::<Events>::default())
}

#[derive(Default)]
struct Events {
    all: u64,
    calls: u64,
    events: u64,
}

impl Watch for Events {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        if call.result > 0 {
            self.calls += 1;
            self.events = self.events.saturating_add(call.result.unsigned_abs());
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let mean = self.events as f64 / self.calls.max(1) as f64;
        let took = basis.part(CALLS, self.calls, self.all);
        (basis.rate(self.calls) >= LEAST_PER_SECOND && mean < FEW).then(|| Found {
            measured: vec![
                rate("waits with events", basis.rate(self.calls)),
                Measure { what: "events each", value: mean, unit: "" },
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: GAIN * took,
            ..Found::default()
        })
    }
}
