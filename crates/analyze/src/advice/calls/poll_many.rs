//! Rule: many descriptors are polled although few are ready.

use super::{Basis, CallEvent, CallRule, Found, Measure, Rule, Watch, count, in_percent, percent, text};

const CALLS: &[&str] = &["poll", "ppoll", "select", "pselect6"];
/// Minimum number of descriptors.
const LEAST_DESCRIPTORS: u64 = 64;
/// Maximum share of descriptors that are ready.
const MOST_READY: f64 = 0.1;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "poll-of-many",
        claim: "polls very many descriptors at once",
        pattern: "poll or select go through many descriptors at each call, of which few are ready",
        threshold: text(format!(
            "{LEAST_DESCRIPTORS} descriptors or more, at most {} of them ready",
            in_percent(MOST_READY)
        )),
        remedy: "epoll, which takes as long as there are events",
        bound: "these calls, less what one for the descriptors that are ready takes",
        source: "epoll(7), select(2); measured: 256 descriptors 8.2 us, epoll_wait 0.11 us",
    };
    CallRule::new(rule, CALLS, || Box::<Polls>::default())
}

#[derive(Default)]
struct Polls {
    all: u64,
    calls: u64,
    descriptors: u64,
    ready: u64,
}

impl Watch for Polls {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.all += 1;
        let at = if call.name.ends_with("poll") { 1 } else { 0 };
        let descriptors = call.arguments[at] & 0xffff_ffff;
        if descriptors >= LEAST_DESCRIPTORS && call.result >= 0 {
            self.calls += 1;
            self.descriptors += descriptors;
            self.ready = self.ready.saturating_add(call.result.unsigned_abs());
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let ready = self.ready as f64 / self.descriptors.max(1) as f64;
        let took = basis.part(CALLS, self.calls, self.all);
        (self.calls > 0 && ready <= MOST_READY).then(|| Found {
            measured: vec![
                count("calls", self.calls),
                Measure {
                    what: "descriptors each",
                    value: self.descriptors as f64 / self.calls as f64,
                    unit: "",
                },
                percent("of them ready", ready, 1.0),
                percent("these calls", took, basis.cpu_ns),
            ],
            cpu_ns: took * (1.0 - ready),
            ..Found::default()
        })
    }
}
