//! The agent's recordings of the machine: their settings, and the memory that they give back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_capture_bpf::LoadOptions;
use plumb_capture_perf::{
    Code, Counter, EventSpec, SamplingOptions, Trigger, release_program, resident_memory, trim_memory,
};
use plumb_record::{MeasureRequest, RecordRequest, Step, WindowedRecording};
use plumb_symbolize::Options;
use plumb_target::{End, Target};

use crate::error::AgentError;
use crate::options::AgentOptions;

/// Longest wait for symbols before their window is sent. The server cannot symbolize kernel functions later.
const LAST_NAMES: Duration = Duration::from_secs(2);
/// Ring size per CPU, in bytes. Small, because samples are few.
const RING: u32 = 256 << 10;
/// Sampling period of page faults per CPU. A fixed period, because the kernel's frequency mode would weight the samples of a burst wrongly. A prime,
/// because programs touch memory in steps of powers of two.
const FAULTS_PERIOD: u64 = 997;
/// Interval between two attempts to return freed memory to the system.
const TRIM: Duration = Duration::from_secs(15);

/// A recording of the machine.
pub(crate) struct Capture {
    pub recording: WindowedRecording,
    max_memory: u64,
    trimmed: Instant,
}

impl Capture {
    /// Starts to sample CPU time, or to measure a quantity instead. The recordings of the agent share its memory limit.
    pub fn begin(options: &AgentOptions, measure: Option<MeasureRequest>) -> Result<Self, AgentError> {
        let max_memory = options.max_memory / if options.profiles.measure.is_some() { 2 } else { 1 };
        let request = request(options, measure, max_memory);
        let names = Options {
            // Function names suffice to locate the time spent, and take a tenth of the memory that lines take.
            lines: false,
            threads: 1,
            cache: None,
            max_memory: Some(max_memory / 8),
            max_resident: Some(options.max_memory),
            ..Options::default()
        };
        let (recording, notes) = WindowedRecording::start(&request, names, LAST_NAMES)?;
        for note in notes {
            tracing::warn!("{note}");
        }
        Ok(Self { recording, max_memory: options.max_memory, trimmed: Instant::now() })
    }

    /// Sample rate, in samples per second of CPU time.
    pub fn frequency_hz(&self) -> u32 {
        self.recording.setup().frequency_hz
    }

    /// Changes the sample rate, in samples per second of CPU time.
    pub fn set_frequency(&mut self, hz: u32) {
        if let Err(error) = self.recording.set_frequency(hz) {
            tracing::warn!(%error, "the sampling rate stays as it is");
        }
    }

    /// Sleeps until there is work or `timeout` has passed, and does the work. Returns `true` if a signal ends the agent.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, AgentError> {
        let step = self.recording.step(timeout)?;
        Ok(matches!(step, Step::Ended(End::Signal(_) | End::Gone | End::Exited(_))))
    }

    /// Returns freed memory to the system if [`TRIM`] has passed and the agent uses more than half of its limit.
    pub fn trim(&mut self) {
        let is_worth = resident_memory().is_some_and(|(resident, _)| resident > self.max_memory / 2);
        if self.trimmed.elapsed() >= TRIM && is_worth {
            self.trimmed = Instant::now();
            self.recording.meanwhile(|| {
                trim_memory();
                release_program();
            });
        }
    }
}

/// The request for samples of CPU time, or for a measured quantity.
fn request(options: &AgentOptions, measure: Option<MeasureRequest>, max_memory: u64) -> RecordRequest {
    let sampling = SamplingOptions {
        frequency_hz: options.frequency_hz,
        each_if_rare: false,
        also: (options.profiles.page_faults && measure.is_none()).then(page_faults).into_iter().collect(),
        // One recorder that handles signals is enough.
        heeds_signals: measure.is_none(),
        // The agent writes only to its spool.
        keep_tables: false,
        overflow_directory: Some(options.spool.directory.as_path().into()),
        // Each copied stack may require rereading a large program's tables that were evicted; this has room for two such programs.
        unwind_memory: part(max_memory, 4),
        ..SamplingOptions::default()
    };
    let kernel = LoadOptions {
        // The account slows each run of every program on the machine, and an agent never ends.
        watches_others: false,
        table_memory: part(max_memory, 10) * 3,
        ring_memory: RING,
        tells_cgroups: true,
        ..LoadOptions::default()
    };
    RecordRequest {
        sampling,
        kernel,
        measure,
        // Without BPF an agent costs more for months: its log says why.
        capture: plumb_record::Capture::Bpf,
        // Stacks that are counted have the time of their last sample only, and bursts are found by the times of all.
        timeline: measure.is_none(),
        max_memory,
        ..RecordRequest::new(Target::Machine)
    }
}

/// The page-fault event. Its stacks are copied: while a BPF program unwound them, clock samples that interrupt it would be dropped.
fn page_faults() -> EventSpec {
    let counter = Counter::Trigger(Arc::new(Trigger::page_faults()));
    EventSpec { counter, code: Code::All, period: Some(FAULTS_PERIOD), is_copied: true }
}

/// One `of`-th of the memory limit, in bytes.
fn part(max_memory: u64, of: u64) -> usize {
    usize::try_from(max_memory / of).unwrap_or(usize::MAX)
}
