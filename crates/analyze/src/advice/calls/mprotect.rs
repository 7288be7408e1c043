//! Rule: memory protections are changed repeatedly.

use rustc_hash::FxHashSet;

use super::{
    Basis, CallEvent, CallRule, Found, MOST, Rule, Watch, count, grouped, in_percent, percent, rate, text,
    word,
};

const CALLS: &[&str] = &["mprotect", "pkey_mprotect"];
/// Minimum number of calls per second, if other threads are affected.
const LEAST_PER_SECOND: f64 = 1000.0;
/// Minimum number of threads that call.
const LEAST_THREADS: usize = 2;
/// Alternatively, minimum share of CPU time.
const LEAST_SHARE: f64 = 0.02;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "mprotect-storm",
        claim: "changes the protection of memory again and again",
        pattern: "protections of memory are changed again and again (JIT code made writable and back, guard pages, collectors): all \
                  processors that run the process have to take notice",
        threshold: text(format!(
            "{} calls a second in {} threads or more, or {} of processor time",
            grouped(LEAST_PER_SECOND),
            word(LEAST_THREADS as u64),
            in_percent(LEAST_SHARE)
        )),
        remedy: "batch the changes, or map the memory twice, once writable and once executable",
        bound: "mprotect",
        source: "Bakhvalov, Performance Analysis and Tuning on Modern CPUs, 12-4: TLB shootdowns; measured: 3.7 us with one thread",
    };
    CallRule::new(rule, CALLS, || Box::<Protects>::default())
}

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
        let many = basis.rate(self.calls) >= LEAST_PER_SECOND && self.threads.len() >= LEAST_THREADS;
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
