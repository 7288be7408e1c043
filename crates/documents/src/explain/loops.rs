//! Findings about a hot loop as JSON.

use plumb_analyze::{LoopCause, LoopFinding};
use serde_json::{Value, json};

/// Returns the finding.
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
        LoopCause::Assists { cycles, least } => {
            json!({"kind": "assists", "cycles": cycles, "least_cycles": least})
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
