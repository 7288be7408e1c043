//! Options of a recording.

use std::path::Path;
use std::sync::Arc;

use plumb_target::Prints;

use crate::attr::{Code, Counter};

/// An event in addition to the first one of a recording.
#[derive(Clone, Debug)]
pub struct EventSpec {
    /// The event that triggers samples.
    pub counter: Counter,
    /// The code that is sampled.
    pub code: Code,
    /// Count between two samples; `None`: the rate of the first event.
    pub period: Option<u64>,
    /// Whether its stacks are copied, whatever unwinds those of the others.
    pub is_copied: bool,
}

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct SamplingOptions {
    /// The event that triggers samples; `None`: the kernel's clock.
    pub counter: Option<Counter>,
    /// Additional events to sample.
    pub also: Vec<EventSpec>,
    /// Samples per second of CPU time; for events that are not clocks, the maximum per second.
    pub frequency_hz: u32,
    /// Count between two samples, instead of a frequency.
    pub period: Option<u64>,
    /// Whether each occurrence of an event is a sample as long as the event is rare; does not apply to clocks and hardware counters.
    pub each_if_rare: bool,
    /// The code that is sampled.
    pub code: Code,
    /// Bytes of stack copied with each sample at first; more if stacks turn out to be deeper.
    pub stack_copy: u32,
    /// Whether stacks that end for lack of unwind information are scanned ([`plumb_ingest::MappedCode::scan_stacks`]).
    pub scan: bool,
    /// Whether unwind tables are read from the user's cache and, for files with many look-ups, written to
    /// it ([`plumb_table_cache`]).
    pub keep_tables: bool,
    /// Memory for cached unwind information of files that is not in use, in bytes.
    pub unwind_memory: usize,
    /// Directory of the nameless file that holds records beyond the memory limit; `None`: that of temporary files.
    pub overflow_directory: Option<Arc<Path>>,
    /// Destination of the command's output.
    pub prints: Prints,
    /// Whether signals end or control the recording; if not, they are left to another recording in this process.
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
