//! Causes of a hot loop's time, as they are reported.

use serde::Serialize;

use super::memory::AccessPattern;

/// The reason why a loop takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LoopCause {
    /// The loop reads one location until that changes, and does nothing else.
    BusyWait {
        /// The loop tries to take a lock.
        takes_lock: bool,
    },
    /// Threads write to one cache line at the same time.
    SharedLine {
        /// Threads write to the same word of the line.
        same_word: bool,
        /// Number of threads.
        threads: usize,
    },
    /// The loop compares elements one by one until one matches, and does nothing else.
    LinearSearch,
    /// The loop follows pointers, each read by the previous load, in memory that fits into the near caches.
    #[serde(rename = "pointer-chain")]
    CachedChase {
        /// Bytes over which the pointers are spread.
        #[serde(rename = "working_set_bytes")]
        working_set: u64,
        /// Least cycles per iteration, each load from the nearest cache.
        cycles: f64,
    },
    /// The loop's loads touch more pages than the TLB covers, with few lines on each.
    TlbMiss {
        /// Bytes of these pages.
        #[serde(rename = "page_bytes")]
        pages: u64,
    },
    /// The loop loads data that was just stored in parts, or at an offset of a few bytes.
    StoreForwarding {
        /// Bytes of the last store that overlaps the load.
        #[serde(rename = "stored_bytes")]
        stored: u64,
        /// Bytes of the load.
        #[serde(rename = "loaded_bytes")]
        loaded: u64,
    },
    /// The loop makes an indirect jump through a table for each step.
    Dispatch {
        /// Number of targets with samples.
        targets: usize,
    },
    /// The loop's branches are mispredicted.
    Mispredictions {
        /// Cycles per iteration, from the addresses and times of samples.
        cycles: f64,
        /// Least cycles per iteration.
        #[serde(rename = "least_cycles")]
        least: f64,
    },
    /// The loop needs microcode assists, as for subnormal numbers.
    Assists {
        /// Cycles per iteration, from the addresses and times of samples.
        cycles: f64,
        /// Least cycles per iteration.
        #[serde(rename = "least_cycles")]
        least: f64,
    },
    /// The loop's loads miss the near caches.
    CacheMiss {
        /// Origin of their addresses.
        pattern: AccessPattern,
        /// Bytes over which they are spread.
        #[serde(rename = "working_set_bytes")]
        working_set: u64,
        /// `working_set` is a lower bound.
        #[serde(rename = "is_lower_bound")]
        is_least: bool,
        /// The working set exceeds the last-level cache.
        #[serde(rename = "beyond_last_level")]
        is_beyond_l3: bool,
        /// Number of sampled addresses that this rests on.
        addresses: usize,
    },
}

/// A cause, with its share of the function. Serializes to a member of the report's document.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoopFinding {
    /// The cause.
    #[serde(flatten)]
    pub cause: LoopCause,
    /// Index of the instruction that shows it.
    #[serde(skip)]
    pub instruction: usize,
    /// Weight of the loop, out of the function's own cost.
    #[serde(skip)]
    pub weight: f64,
    /// Share of that weight that would be saved without the cause, according to the code's bounds.
    #[serde(rename = "avoidable_share")]
    pub avoidable: f64,
}
