//! Rule: a large memory region is populated in small pages.

use super::pages::{Range, Ranges};
use super::{
    Basis, CallEvent, CallRule, FaultEvent, Found, MOST, Measure, Rule, Watch, count, part, percent, size,
    text,
};

const CALLS: &[&str] = &["mmap"];
/// Minimum size of a region in bytes.
const LEAST_BYTES: u64 = 4 << 20;
/// Minimum number of faults in it: as many as there are small pages in a huge page.
const LEAST_FAULTS: u64 = 512;
/// `MAP_ANONYMOUS`.
const ANONYMOUS: u64 = 0x20;
/// Minimum average number of faults per huge page that the region has room for: occasionally no huge page is
/// available.
const LEAST_EACH: u64 = 8;
/// Size of a huge page in bytes.
const HUGE: u64 = 2 << 20;
/// Share of the faults' time that huge pages save.
const SAVED: f64 = 0.9;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "huge-pages",
        claim: "touches more memory than page tables are cached for: huge pages would do",
        pattern: "a large region faults in page by page: transparent huge pages are not used for it",
        threshold: text(format!(
            "{LEAST_FAULTS} faults in an anonymous region of {} or more, and {LEAST_EACH} for each huge page that it has room for",
            size(LEAST_BYTES)
        )),
        remedy: "align it to 2 MiB and madvise(MADV_HUGEPAGE), or set transparent_hugepage/enabled to always; MADV_POPULATE_WRITE saves \
                 only 8%",
        bound: text(format!("{} of the faults in such regions", part(SAVED))),
        source: "Documentation/admin-guide/mm/transhuge.rst: one fault for 2 MiB instead of 512; measured: 64 MiB touched in 2.8 ms \
                 instead of 28.1",
    };
    CallRule { faults: true, ..CallRule::new(rule, CALLS, || Box::<Regions>::default()) }
}

/// Counters of a region.
#[derive(Default)]
struct Region {
    faults: u64,
    /// Number of times it was mapped. A new mapping at the same address is the same region.
    times: u64,
}

fn is_small_paged(region: &&Range<Region>) -> bool {
    let Region { faults, times } = region.known;
    let room = (region.length / HUGE).saturating_mul(times);
    faults >= LEAST_FAULTS && faults >= room.saturating_mul(LEAST_EACH)
}

#[derive(Default)]
struct Regions {
    all: u64,
    regions: Ranges<Region>,
    count: usize,
}

impl Watch for Regions {
    fn call(&mut self, call: &CallEvent<'_>) {
        let [_, length, _, flags, ..] = call.arguments;
        if length < LEAST_BYTES || flags & ANONYMOUS == 0 || call.result <= 0 || self.count >= MOST {
            return;
        }
        self.count += 1;
        let own = self.regions.of(call.pid).entry(call.result as u64);
        let region = own.or_insert(Range { length, known: Region::default() });
        region.length = length;
        region.known.times += 1;
    }

    fn fault(&mut self, fault: &FaultEvent) {
        self.all += 1;
        if let Some(region) = self.regions.at(fault.pid, fault.address) {
            region.faults += 1;
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        let found = self.regions.all().filter(is_small_paged);
        let (regions, bytes, faults) = found.fold((0, 0, 0_u64), |sum, one| {
            (sum.0 + 1, one.length.saturating_add(sum.1), sum.2 + one.known.faults)
        });
        let cpu_ns = SAVED * basis.faults(faults, self.all);
        (regions > 0).then(|| Found {
            measured: vec![
                count("regions", regions),
                Measure { what: "their size", value: bytes as f64 / (1 << 20) as f64, unit: "MiB" },
                count("faults in them", faults),
                percent("of processor time", basis.faults(faults, self.all), basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
