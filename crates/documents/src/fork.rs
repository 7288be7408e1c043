//! The cost of starting a program from parents of different sizes, by method.

use std::collections::BTreeMap;

use plumb_analyze::Spread;
use serde::Serialize;

/// Measured starts.
#[derive(Serialize)]
pub struct ForkDocument<'f> {
    /// Version of all documents.
    pub version: u32,
    /// The program that was started.
    pub program: &'f str,
    /// Starts per method and size.
    pub runs: u32,
    /// Version of the kernel.
    pub kernel: String,
    /// The setting of huge pages, which make a fork far cheaper.
    pub huge_pages: String,
    /// Memory that was available.
    pub available_bytes: u64,
    /// Sizes that were too large for this memory, in MiB.
    pub left_out_mb: &'f [u64],
    /// The measured sizes.
    pub sizes: Vec<ForkSize>,
    /// CPU time per MiB of the parent, by method; `None`: too few sizes.
    pub cpu_ms_per_mb: BTreeMap<&'static str, Option<f64>>,
}

/// The starts from a parent of one size.
#[derive(Serialize)]
pub struct ForkSize {
    /// Resident memory of the parent, in MiB.
    pub mb: u64,
    /// The times of each method.
    pub ways: BTreeMap<&'static str, ForkTimes>,
    /// CPU time of fork for each of posix_spawn.
    pub fork_to_posix_spawn: f64,
}

/// The times of a method, in milliseconds.
#[derive(Serialize)]
pub struct ForkTimes {
    /// CPU time of parent and child.
    pub cpu_ms: SpreadJson,
    /// Wall-clock time.
    pub wall_ms: SpreadJson,
}

document! {
    /// A median and its quartiles.
    pub struct SpreadJson as "Spread" of (spread: Spread) {
        lower: f64 = spread.lower,
        median: f64 = spread.median,
        upper: f64 = spread.upper,
    }
}
