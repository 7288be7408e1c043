//! Rule: memory protections are changed repeatedly.

use rustc_hash::FxHashSet;

use super::{Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, percent, rate};

const CALLS: &[&str] = &["mprotect", "pkey_mprotect"];
/// Minimum number of calls per second, if other threads are affected.
const LEAST_PER_SECOND: f64 = 1000.0;
/// Alternatively, minimum share of CPU time.
const LEAST_SHARE: f64 = 0.02;

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "mprotect-storm",
        claim: "changes the protection of memory again and again",
        pattern: "protections of memory are changed again and again (JIT code made writable and back, guard pages, collectors): all \
                  processors that run the process have to take notice",
        threshold: "1,000 calls a second in two threads or more, or 2% of processor time",
        remedy: "batch the changes, or map the memory twice, once writable and once executable",
        bound: "mprotect",
        source: "Bakhvalov, Performance Analysis and Tuning on Modern CPUs, 12-4: TLB shootdowns; measured: 3.7 us with one thread",
    },
    calls: CALLS,
    also_watched: &[],
    faults: false,
    watch: || Box::<Protects>::default(),
};

#[derive(Default)]
struct Protects {
    calls: u64,
    threads: FxHashSet<u32>,
}

impl Watch for Protects {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        if self.threads.len() < MOST {
            self.threads.insert(call.tid);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let cpu_ns = basis.part(CALLS, self.calls, self.calls);
        let many = basis.rate(self.calls) >= LEAST_PER_SECOND && self.threads.len() >= 2;
        (many || cpu_ns >= LEAST_SHARE * basis.cpu_ns).then(|| Found {
            measured: vec![
                rate("calls", basis.rate(self.calls)),
                count("threads that call", self.threads.len() as u64),
                percent("mprotect", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
