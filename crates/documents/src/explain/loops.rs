//! The findings on a hot loop, in a sentence.
//!
//! Elsewhere: the same as JSON, which [`LoopFinding`] serializes to.

use plumb_analyze::{AccessPattern, LoopCause, LoopFinding};

/// Returns the evidence as a sentence.
pub fn sentence(finding: &LoopFinding) -> String {
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
        LoopCause::Assists { cycles, least } => format!(
            "a round takes {cycles:.0} cycles and its instructions need {least:.1}; it only computes with numbers from memory near by"
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

/// A size such as `48 MiB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}
