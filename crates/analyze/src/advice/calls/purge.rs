//! Rule: an allocator returns memory that it soon needs again.

use super::pages::{PAGE, Range, Ranges};
use super::{
    Basis, CallEvent, CallRule, FaultEvent, Found, MOST, Rule, Watch, count, part, percent, seconds, text,
};

const CALLS: &[&str] = &["madvise"];
/// `MADV_DONTNEED` and `MADV_FREE`.
const GIVES_BACK: [u64; 2] = [4, 8];
/// Minimum share of the returned pages that fault back in.
const LEAST_BACK: f64 = 0.5;
/// Maximum time until they fault back in, in nanoseconds.
const SOON_NS: u64 = 1_000_000_000;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "purged-too-soon",
        claim: "has the allocator give memory back too soon",
        pattern: "the allocator gives pages back by madvise, and they fault in again",
        threshold: text(format!(
            "{} of the pages given back are touched again within {}",
            part(LEAST_BACK),
            seconds(SOON_NS)
        )),
        remedy: "let the allocator wait longer before it gives memory back: dirty_decay_ms (jemalloc), MIMALLOC_PURGE_DELAY, GOGC and \
                 GOMEMLIMIT (Go)",
        bound: "madvise, and the faults on these pages",
        source: "judgement; Bakhvalov, Performance Analysis and Tuning on Modern CPUs, 12-4: madvise and munmap make all processors drop \
                 addresses from their caches",
    };
    CallRule { faults: true, ..CallRule::new(rule, CALLS, || Box::<Purged>::default()) }
}

#[derive(Default)]
struct Purged {
    calls: u64,
    all_faults: u64,
    /// Returned ranges, and the time of their return.
    ranges: Ranges<u64>,
    count: usize,
    purges: u64,
    pages: u64,
    back: u64,
}

impl Watch for Purged {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let [address, length, advice, ..] = call.arguments;
        if !GIVES_BACK.contains(&advice) || call.result < 0 || self.count >= MOST {
            return;
        }
        self.purges += 1;
        self.pages = self.pages.saturating_add(length.div_ceil(PAGE));
        let range = Range { length, known: call.begin_ns.saturating_add(call.wall_ns) };
        self.count += usize::from(self.ranges.of(call.pid).insert(address, range).is_none());
    }

    fn fault(&mut self, fault: &FaultEvent) {
        self.all_faults += 1;
        if let Some(time) = self.ranges.at(fault.pid, fault.address) {
            self.back += u64::from(fault.time_ns.saturating_sub(*time) <= SOON_NS);
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        if self.pages == 0 || (self.back as f64) < LEAST_BACK * self.pages as f64 {
            return None;
        }
        let cpu_ns = basis.part(CALLS, self.purges, self.calls) + basis.faults(self.back, self.all_faults);
        Some(Found {
            measured: vec![
                count("pages given back", self.pages),
                percent("of them back within 1 s", self.back as f64, self.pages as f64),
                percent("madvise and these faults", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
