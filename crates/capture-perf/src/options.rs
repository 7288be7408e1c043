//! How to record.

use std::path::Path;
use std::sync::Arc;

use plumb_target::Prints;

use crate::attr::{Code, Counter};

/// An event beside the first one of a recording.
#[derive(Clone, Debug)]
pub struct EventSpec {
    /// What samples are taken by.
    pub counter: Counter,
    /// Which code is sampled.
    pub code: Code,
    /// A sample each time that so much was counted; `None`: as often as of the first one.
    pub period: Option<u64>,
    /// Its stacks are copied, whatever walks those of the others.
    pub is_copied: bool,
}

/// How to record.
#[derive(Clone, Debug)]
pub struct SamplingOptions {
    /// What samples are taken by; `None`: the kernel's clock.
    pub counter: Option<Counter>,
    /// What else samples are taken by, each as an event of its own.
    pub also: Vec<EventSpec>,
    /// Samples per second of processor time; of what isn't a clock, per second at most.
    pub frequency_hz: u32,
    /// A sample each time that so much was counted, instead of by frequency.
    pub period: Option<u64>,
    /// Of what is no clock and no counter of the processor each single occurrence is a sample, as long as they are rare.
    pub each_if_rare: bool,
    /// Which code is sampled.
    pub code: Code,
    /// Bytes of stack copied with each sample at first; more when they don't reach.
    pub stack_copy: u32,
    /// Whether stacks that end for want of unwind information are scanned ([`plumb_ingest::Ingest::scan_stacks`]).
    pub scan: bool,
    /// Whether tables of files are taken from the user's cache and, where many addresses of one are looked up, made for
    /// it ([`plumb_table_cache`]).
    pub keep_tables: bool,
    /// Bytes of files' unwind information that are kept in memory, beyond what is in use.
    pub unwind_memory: usize,
    /// Where records wait in a file without a name when there are more than memory is to take; `None`: where temporary files are.
    pub overflow_directory: Option<Arc<Path>>,
    /// Where what a command prints goes.
    pub prints: Prints,
    /// Signals end or steer the recording; without, they are left to another recording beside it.
    pub heeds_signals: bool,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self {
            counter: None,
            also: Vec::new(),
            frequency_hz: 999,
            period: None,
            each_if_rare: true,
            code: Code::All,
            stack_copy: 16 << 10,
            scan: false,
            keep_tables: false,
            unwind_memory: 32 << 20,
            overflow_directory: None,
            prints: Prints::Through,
            heeds_signals: true,
        }
    }
}
