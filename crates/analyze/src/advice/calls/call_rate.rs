//! Rule: entering the kernel dominates the cost of system calls.

use super::{Basis, CallEvent, CallRule, Found, Rule, Watch, grouped, in_percent, percent, rate, text};

const CALLS: &[&str] = &[
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "sendto",
    "recvfrom",
    "sendmsg",
    "recvmsg",
    "epoll_wait",
    "epoll_pwait",
    "poll",
    "futex",
    "lseek",
];
/// Minimum number of calls per second.
const LEAST_PER_SECOND: f64 = 100_000.0;
/// Minimum share of CPU time for entering and leaving the kernel alone.
const LEAST_SHARE: f64 = 0.15;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "very-many-calls",
        claim: "makes very many system calls",
        pattern: "so many calls are made that entering and leaving the kernel takes much of the time, whatever they do",
        threshold: text(format!(
            "{} calls for input and output a second, of which entering and leaving takes {} of processor time",
            grouped(LEAST_PER_SECOND),
            in_percent(LEAST_SHARE)
        )),
        remedy: "do more with each call (larger buffers, readv, recvmmsg), or hand them over in batches: io_uring",
        bound: "as many calls that do nothing",
        source: "judgement; what a call that does nothing takes is measured on this machine",
    };
    CallRule::new(rule, CALLS, || Box::<Entries>::default())
}

#[derive(Default)]
struct Entries {
    calls: u64,
}

impl Watch for Entries {
    fn call(&mut self, _call: &CallEvent<'_>) {
        self.calls += 1;
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let cpu_ns = self.calls as f64 * basis.costs.call;
        let many = basis.rate(self.calls) >= LEAST_PER_SECOND;
        (many && cpu_ns >= LEAST_SHARE * basis.cpu_ns).then(|| Found {
            measured: vec![
                rate("calls", basis.rate(self.calls)),
                percent("entering and leaving", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
