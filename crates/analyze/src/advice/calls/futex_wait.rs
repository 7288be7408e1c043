//! Rule: threads that have work wait for each other.
//!
//! Waits for locks are recognized by their expected value, as in `sleep_under_lock`. The purpose of other waits is
//! unknown: idle threads in a pool wait in the same way.

use rustc_hash::FxHashMap;

use super::sleep_under_lock::{is_for_lock, is_wait};
use super::{
    Basis, CallEvent, CallRule, EAGAIN, Found, MOST, Rule, Watch, count, grouped, in_percent, percent, text,
};

/// Minimum wait and minimum run time of a thread, as a share of the elapsed time.
const LEAST_SHARE: f64 = 0.1;
/// Alternatively, minimum share of waits that were too late to wait, and minimum number of waits.
const LEAST_LATE: (f64, u64) = (0.2, 1000);

/// Name of the rule.
pub(super) const NAME: &str = "lock-contention";

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: NAME,
        claim: "waits for locks",
        pattern: "threads that also compute wait for locks: a lock that is not fought for takes no system call",
        threshold: text(format!(
            "waits of {} of the elapsed time in threads that run for as much, or {} of {} waits that come too late (EAGAIN)",
            in_percent(LEAST_SHARE),
            in_percent(LEAST_LATE.0),
            grouped(LEAST_LATE.1 as f64)
        )),
        remedy: "compute before the lock is taken and hold it for less, split it, use fewer threads, or give each thread its own data; where threads \
                 idle in a pool, which wait too, look at the stacks (plumb record --off-cpu)",
        bound: "what threads that run wait, and the calls; of waits that are known to be for locks what the longest such thread waits, as far as \
                processors are free",
        source: "futex(7): without contention all is done in user space; the numbers are judgement",
    };
    CallRule::new(rule, &["futex"], || Box::<Waits>::default())
}

/// Time that a thread waited, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Waited {
    for_locks: u64,
    for_others: u64,
}

impl Waited {
    fn all(self) -> u64 {
        self.for_locks.saturating_add(self.for_others)
    }
}

#[derive(Default)]
struct Waits {
    calls: u64,
    waits: u64,
    late: u64,
    threads: FxHashMap<u32, Waited>,
}

impl Watch for Waits {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        if !is_wait(call) {
            return;
        }
        self.waits += 1;
        self.late += u64::from(call.result == EAGAIN);
        if self.threads.len() < MOST || self.threads.contains_key(&call.tid) {
            let waited = self.threads.entry(call.tid).or_default();
            let sum = if is_for_lock(call) { &mut waited.for_locks } else { &mut waited.for_others };
            *sum = sum.saturating_add(call.wall_ns);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let least = LEAST_SHARE * basis.span_ns;
        let runs = |tid: &u32| basis.cpu_of_thread.get(tid).is_some_and(|&ns| ns >= least);
        let waits = |waited: Waited| waited.all() as f64 >= least;
        let working: Vec<Waited> = self
            .threads
            .iter()
            .filter(|&(tid, &waited)| waits(waited) && runs(tid))
            .map(|(_, &waited)| waited)
            .collect();
        let is_late = self.waits >= LEAST_LATE.1 && self.late as f64 >= LEAST_LATE.0 * self.waits as f64;
        if working.is_empty() && !is_late {
            return None;
        }
        let all_ns: f64 = working.iter().map(|waited| waited.all() as f64).sum();
        let longest = working.iter().map(|waited| waited.for_locks as f64).fold(0.0, f64::max);
        let is_known = longest >= least;
        Some(Found {
            measured: vec![
                count("waits", self.waits),
                count("threads that run and wait", working.len() as u64),
                percent("of the elapsed time, all of them", all_ns, basis.span_ns),
                percent("waits that came too late", self.late as f64, self.waits as f64),
            ],
            cpu_ns: basis.part(&["futex"], self.calls, self.calls),
            wall_ns: if is_known { longest.min(basis.spare_ns()) } else { all_ns },
            may_idle: !is_known,
            ..Found::default()
        })
    }
}
