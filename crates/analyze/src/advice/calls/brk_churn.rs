//! Rule: the heap is shrunk and grown repeatedly.

use rustc_hash::FxHashMap;

use super::pages::Pages;
use super::{
    Basis, CallEvent, CallRule, FaultEvent, Found, MOST, Rule, Watch, count, in_percent, percent, rate, text,
};

const CALLS: &[&str] = &["brk"];
/// Minimum number of shrinks per second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Alternatively, minimum share of CPU time.
const LEAST_SHARE: f64 = 0.05;
/// Minimum number of shrinks for that alternative.
const LEAST_SHRINKS: u64 = 10;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "brk-churn",
        claim: "grows and trims the heap again and again",
        pattern: "the allocator gives the end of the heap back and takes it again: each time its pages are freed, and fault in anew",
        threshold: text(format!(
            "the heap shrinks {LEAST_PER_SECOND} times a second, or {LEAST_SHRINKS} times and brk with its faults takes {} of processor time",
            in_percent(LEAST_SHARE)
        )),
        remedy: "raise M_TRIM_THRESHOLD and M_TOP_PAD (mallopt, or MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ in the environment), use another \
                 allocator, or keep a pool",
        bound: "brk, and the faults on pages of the heap that had been there before",
        source: "mallopt(3): M_TRIM_THRESHOLD is 128 KiB, a trade-off against the number of system calls; measured: giving 4 MiB back \
                 takes 0.28 ms and 1,024 faults of 1.5 us",
    };
    CallRule { faults: true, ..CallRule::new(rule, CALLS, || Box::<Heap>::default()) }
}

#[derive(Default)]
struct Heap {
    calls: u64,
    shrinks: u64,
    /// By process: lowest and highest end of its heap so far, and the current end.
    heaps: FxHashMap<u32, (u64, u64, u64)>,
    pages: Pages,
    faults: u64,
    /// Faults on heap pages that had been present before.
    again: u64,
}

impl Watch for Heap {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let end = call.result as u64;
        if self.heaps.len() >= MOST && !self.heaps.contains_key(&call.pid) {
            return;
        }
        let (low, high, last) = self.heaps.entry(call.pid).or_insert((end, end, end));
        self.shrinks += u64::from(end < *last);
        (*low, *high, *last) = (end.min(*low), end.max(*high), end);
    }

    fn fault(&mut self, fault: &FaultEvent) {
        self.faults += 1;
        if self.heaps.get(&fault.pid).is_some_and(|&(low, high, _)| (low..high).contains(&fault.address)) {
            self.again += u64::from(self.pages.again(fault.pid, fault.address));
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let brk = basis.part(CALLS, self.calls, self.calls);
        let cpu_ns = brk + basis.faults(self.again, self.faults);
        let is_much = cpu_ns >= LEAST_SHARE * basis.cpu_ns && self.shrinks >= LEAST_SHRINKS;
        (basis.rate(self.shrinks) >= LEAST_PER_SECOND || is_much).then(|| Found {
            measured: vec![
                rate("shrinks", basis.rate(self.shrinks)),
                count("faults on the heap again", self.again),
                percent("brk and these faults", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
