//! Rule: memory of one size is repeatedly mapped, touched and unmapped.

use rustc_hash::FxHashMap;

use super::pages::{Range, Ranges};
use super::{
    Basis, CallEvent, CallRule, FaultEvent, Found, MOST, Measure, Rule, Watch, count, in_percent, percent,
    rate, text,
};

const CALLS: &[&str] = &["mmap", "munmap"];
/// Minimum number of pairs of mmap and munmap per second.
const LEAST_PER_SECOND: f64 = 100.0;
/// Minimum average number of faults per pair.
const LEAST_FAULTS: f64 = 8.0;
/// `MAP_ANONYMOUS`.
const ANONYMOUS: u64 = 0x20;
/// Ratio within which lengths count as similar.
const ALIKE: f64 = 1.1;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "mmap-churn",
        claim: "maps and unmaps memory again and again",
        pattern: "buffers of much the same size are mapped, used and unmapped: each time they are zeroed and fault in anew",
        threshold: text(format!(
            "{LEAST_PER_SECOND} pairs of mmap and munmap a second, of lengths within {}, with {LEAST_FAULTS} faults each",
            in_percent(ALIKE - 1.0)
        )),
        remedy: "keep the buffer, use a pool, or raise M_MMAP_THRESHOLD and M_TRIM_THRESHOLD above its size (mallopt, or MALLOC_MMAP_THRESHOLD_ and \
                 MALLOC_TRIM_THRESHOLD_ in the environment; one alone gains little)",
        bound: "mmap, munmap, and the faults on what they map",
        source: "mallopt(3): zeroing mapped memory is expensive, the threshold is 128 KiB and grows up to 32 MiB; measured: 64 KiB mapped, \
                 touched and unmapped take 31 us",
    };
    CallRule { faults: true, ..CallRule::new(rule, CALLS, || Box::<Maps>::default()) }
}

#[derive(Clone, Copy, Default)]
struct Pairs {
    pairs: u64,
    bytes: u64,
    faults: u64,
}

#[derive(Default)]
struct Maps {
    calls: u64,
    faults: u64,
    /// Current mappings, with the number of faults in each.
    mapped: Ranges<u64>,
    /// Pairs by the logarithm of their length.
    pairs: FxHashMap<u32, Pairs>,
}

impl Watch for Maps {
    fn call(&mut self, call: &CallEvent<'_>) {
        self.calls += 1;
        let [address, length, _, flags, ..] = call.arguments;
        if !self.mapped.has_room_for(call.pid) {
            return;
        }
        let own = self.mapped.of(call.pid);
        if call.name == "munmap" {
            let Some(mapped) = own.remove(&address).filter(|mapped| mapped.length == length) else { return };
            let pairs = self.pairs.entry((length as f64).log(ALIKE) as u32).or_default();
            pairs.pairs += 1;
            pairs.bytes = pairs.bytes.saturating_add(length);
            pairs.faults += mapped.known;
        } else if flags & ANONYMOUS != 0 && call.result > 0 && own.len() < MOST {
            own.insert(call.result as u64, Range { length, known: 0 });
        }
    }

    fn fault(&mut self, fault: &FaultEvent) {
        self.faults += 1;
        if let Some(faults) = self.mapped.at(fault.pid, fault.address) {
            *faults += 1;
        }
    }

    fn judge(&self, basis: &Basis) -> Option<Found> {
        // Rounding the logarithm separates some similar lengths, so neighbors count together.
        let of = |key: u32| {
            let [one, next] = [key, key + 1].map(|key| self.pairs.get(&key).copied().unwrap_or_default());
            Pairs {
                pairs: one.pairs + next.pairs,
                bytes: one.bytes.saturating_add(next.bytes),
                faults: one.faults + next.faults,
            }
        };
        let pairs = self.pairs.keys().map(|&key| of(key)).max_by_key(|pairs| (pairs.pairs, pairs.bytes))?;
        let each = pairs.faults as f64 / pairs.pairs.max(1) as f64;
        if basis.rate(pairs.pairs) < LEAST_PER_SECOND || each < LEAST_FAULTS {
            return None;
        }
        let cpu_ns = basis.part(CALLS, 2 * pairs.pairs, self.calls) + basis.faults(pairs.faults, self.faults);
        Some(Found {
            measured: vec![
                rate("pairs", basis.rate(pairs.pairs)),
                Measure {
                    what: "mean length",
                    value: pairs.bytes as f64 / pairs.pairs as f64 / 1024.0,
                    unit: "KiB",
                },
                count("faults on them", pairs.faults),
                percent("mmap, munmap and these faults", cpu_ns, basis.cpu_ns),
            ],
            cpu_ns,
            ..Found::default()
        })
    }
}
