//! What a hot loop showed, in a sentence and for programs.

use plumb_analyze::{AccessPattern, CacheSizes, LoopCause, LoopFinding};
use serde_json::{Value, json};

/// The caches of this machine, which is taken for that of the recording.
pub(super) fn caches() -> CacheSizes {
    let [_, l2, l3, l4] = plumb_process::cache_sizes();
    let known = CacheSizes::default();
    let l2 = l2.unwrap_or(known.l2);
    CacheSizes { l2, l3: l4.or(l3).unwrap_or(known.l3.max(l2)) }
}

/// The evidence.
pub(super) fn sentence(finding: &LoopFinding) -> String {
    match finding.cause {
        LoopCause::BusyWait { takes_lock: true } => {
            "the loop tries to take a lock again and again, and does nothing else".into()
        }
        LoopCause::BusyWait { takes_lock: false } => {
            "the loop reads one variable, compares it and writes nothing".into()
        }
        LoopCause::SharedLine { same_word: true, threads } => {
            format!("{threads} threads write to the same address at the same time")
        }
        LoopCause::SharedLine { same_word: false, threads } => {
            format!("{threads} threads write to different words of the same 64 bytes at the same time")
        }
        LoopCause::LinearSearch => {
            "the loop loads one element after the other, compares it and writes nothing".into()
        }
        LoopCause::CachedChase { working_set, cycles } => format!(
            "a round takes {cycles:.0} cycles at least, as each load waits for the one before; the data is about {}, which the caches hold",
            size(working_set)
        ),
        LoopCause::StoreForwarding { stored, loaded } => format!(
            "{loaded} bytes are loaded right after {stored} of them were stored by themselves, which the cache has to put together"
        ),
        LoopCause::Dispatch { targets } => {
            format!("an indirect jump for each step, to {targets} places with samples")
        }
        LoopCause::Mispredictions { cycles, least } => format!(
            "a round takes {cycles:.0} cycles and its instructions need {least:.1}; it loads from memory near by, and no other cause is known"
        ),
        LoopCause::TlbMiss { pages } => {
            format!("sampled addresses are on {} of pages, few lines of each", size(pages))
        }
        LoopCause::CacheMiss { pattern, working_set, is_least, is_beyond_l3, addresses } => {
            let least = if is_least { "at least" } else { "about" };
            let where_to = if is_beyond_l3 {
                "more than all caches hold"
            } else {
                "more than the second level of the cache holds"
            };
            let how = match pattern {
                AccessPattern::PointerChase => "; each address is read by the load before",
                AccessPattern::Gather => "; the addresses come from an array of indices",
                AccessPattern::Scattered => "",
                AccessPattern::LongStride => "; each load is on another page than the one before",
            };
            format!(
                "{addresses} sampled addresses are spread over {least} {}, {where_to}{how}",
                size(working_set)
            )
        }
    }
}

/// `48 MiB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// The same for programs.
pub(super) fn json(finding: &LoopFinding) -> Value {
    let mut value = match finding.cause {
        LoopCause::BusyWait { takes_lock } => json!({"kind": "busy-wait", "takes_lock": takes_lock}),
        LoopCause::SharedLine { same_word, threads } => {
            json!({"kind": "shared-line", "same_word": same_word, "threads": threads})
        }
        LoopCause::LinearSearch => json!({"kind": "linear-search"}),
        LoopCause::CachedChase { working_set, cycles } => {
            json!({"kind": "pointer-chain", "working_set_bytes": working_set, "cycles": cycles})
        }
        LoopCause::StoreForwarding { stored, loaded } => {
            json!({"kind": "store-forwarding", "stored_bytes": stored, "loaded_bytes": loaded})
        }
        LoopCause::Dispatch { targets } => json!({"kind": "dispatch", "targets": targets}),
        LoopCause::Mispredictions { cycles, least } => {
            json!({"kind": "mispredictions", "cycles": cycles, "least_cycles": least})
        }
        LoopCause::TlbMiss { pages } => json!({"kind": "tlb-miss", "page_bytes": pages}),
        LoopCause::CacheMiss { pattern, working_set, is_least, is_beyond_l3, addresses } => json!({
            "kind": "cache-miss",
            "pattern": pattern.name(),
            "working_set_bytes": working_set,
            "is_lower_bound": is_least,
            "beyond_last_level": is_beyond_l3,
            "addresses": addresses,
        }),
    };
    value["avoidable_share"] = finding.avoidable.into();
    value
}
