//! Threads that have work wait for each other.

use rustc_hash::FxHashMap;

use super::{Basis, CallEvent, CallRule, EAGAIN, Found, MOST, Rule, Watch, count, percent};

/// The operation of a futex call without its flags, and the two that wait.
const OPERATION: u64 = 0x7f;
const WAITS: [u64; 2] = [0, 9];
/// From this share of the elapsed time that a thread waits, which also runs for as much.
const LEAST_SHARE: f64 = 0.1;
/// Or from this share of waits that were too late to wait, and so many.
const LEAST_LATE: (f64, u64) = (0.2, 1000);

pub(super) const RULE: CallRule = CallRule {
    rule: Rule {
        name: "lock-contention",
        claim: "waits for locks",
        pattern: "threads that also compute wait for locks: a lock that is not fought for takes no system call",
        threshold: "waits of 10% of the elapsed time in threads that run for as much, or 20% of 1,000 waits that come too late (EAGAIN)",
        remedy: "hold the lock for less, split it, use fewer threads, or give each thread its own data; threads that idle in a pool wait too: \
                 look at the stacks (plumb record --off-cpu)",
        bound: "what threads that run wait, and the calls",
        source: "futex(7): without contention all is done in user space; the numbers are judgement",
    },
    calls: &["futex"],
    also_watched: &[],
    faults: false,
    watch: || Box::<Waits>::default(),
};

#[derive(Default)]
struct Waits {
    calls: u64,
    waits: u64,
    late: u64,
    /// By thread: how long it waited.
    threads: FxHashMap<u32, u64>,
}

impl Watch for Waits {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        if !WAITS.contains(&(call.arguments[1] & OPERATION)) {
            return;
        }
        self.waits += 1;
        self.late += u64::from(call.result == EAGAIN);
        if self.threads.len() < MOST || self.threads.contains_key(&call.tid) {
            let waited = self.threads.entry(call.tid).or_default();
            *waited = waited.saturating_add(call.wall_ns);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let least = LEAST_SHARE * basis.span_ns;
        let runs = |tid: &u32| basis.cpu_of_thread.get(tid).is_some_and(|&ns| ns >= least);
        let working: Vec<f64> = self
            .threads
            .iter()
            .filter(|&(tid, &waited)| waited as f64 >= least && runs(tid))
            .map(|(_, &waited)| waited as f64)
            .collect();
        let is_late = self.waits >= LEAST_LATE.1 && self.late as f64 >= LEAST_LATE.0 * self.waits as f64;
        if working.is_empty() && !is_late {
            return None;
        }
        let wall_ns = working.iter().sum();
        Some(Found {
            measured: vec![
                count("waits", self.waits),
                count("threads that run and wait", working.len() as u64),
                percent("of the elapsed time, all of them", wall_ns, basis.span_ns),
                percent("waits that came too late", self.late as f64, self.waits as f64),
            ],
            cpu_ns: basis.part(&["futex"], self.calls, self.calls),
            wall_ns,
            ..Found::default()
        })
    }
}
