//! Rule: descriptors are read before data is available.

use super::{Basis, CallEvent, CallRule, EAGAIN, Found, Rule, Watch, count, grouped, part, percent, text};

const CALLS: &[&str] = &["read", "readv", "recvfrom", "recvmsg", "recvmmsg", "accept4", "accept"];
/// Minimum share of the calls.
const LEAST_SHARE: f64 = 0.5;
/// Minimum number of such calls.
const LEAST_CALLS: u64 = 1000;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "read-without-readiness",
        claim: "reads where nothing is ready",
        pattern: "reads and receives mostly find nothing (EAGAIN)",
        threshold: text(format!(
            "{} of the calls, {} of them",
            part(LEAST_SHARE),
            grouped(LEAST_CALLS as f64)
        )),
        remedy: "read when epoll says that there is something; with EPOLLET until the first EAGAIN and not again before the next event",
        bound: "the calls that find nothing",
        source: "judgement; epoll(7)",
    };
    CallRule::new(rule, CALLS, || Box::<Reads>::default())
}

#[derive(Default)]
struct Reads {
    calls: u64,
    nothing: u64,
}

impl Watch for Reads {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        self.nothing += u64::from(call.result == EAGAIN);
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let is_much = self.nothing as f64 >= LEAST_SHARE * self.calls as f64;
        let cpu_ns = basis.part(CALLS, self.nothing, self.calls);
        (is_much && self.nothing >= LEAST_CALLS).then(|| Found {
            measured: vec![
                count("found nothing", self.nothing),
                percent("of all reads", self.nothing as f64, self.calls as f64),
                percent("these calls", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
