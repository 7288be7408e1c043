//! A request for a recording.

use std::time::Duration;

use plumb_capture_api::KernelUnwinder;
use plumb_capture_bpf::{LoadOptions, Programs};
use plumb_capture_perf::{Counter, SamplingOptions};
use plumb_target::{Launch, Prints, Target};

use crate::capture::{self, Capture};
use crate::error::RecordError;
use crate::measure::MeasureRequest;
use crate::memory;

/// A request for a recording.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The target.
    pub target: Target,
    /// Duration; `None`: until the target ends, or Ctrl-C.
    pub duration: Option<Duration>,
    /// The sampled events and their rates.
    pub sampling: SamplingOptions,
    /// The method of capturing stacks.
    pub capture: Capture,
    /// Whether each sample keeps its time.
    pub timeline: bool,
    /// A quantity to measure; together with the requested events, or alone without any.
    pub measure: Option<MeasureRequest>,
    /// Memory limit in bytes.
    pub max_memory: u64,
    /// Settings of the programs in the kernel. What they measure and count follows from the rest of the request.
    pub kernel: LoadOptions,
    /// Whether debuginfod servers are queried for missing symbols.
    pub debuginfod: bool,
    /// The words of the command, to be stored in the recording.
    pub command: Vec<String>,
}

/// Memory limit in bytes, unless another is asked for.
pub const MAX_MEMORY: u64 = 256 << 20;
/// Limit for unwind tables in the kernel, in MiB, unless another is asked for.
pub const TABLES_MIB: u16 = 64;

impl RecordRequest {
    /// Name of the recorder in recordings.
    pub const RECORDER: &str = concat!("plumb ", env!("CARGO_PKG_VERSION"));

    /// A request to record the CPU time of a target until it ends.
    pub fn new(target: Target) -> Self {
        let command = match &target {
            Target::Command(launch) => words(launch),
            _ => Vec::new(),
        };
        let sampling = SamplingOptions { keep_tables: true, ..SamplingOptions::default() };
        Self {
            target,
            duration: None,
            sampling,
            capture: Capture::default(),
            timeline: false,
            measure: None,
            max_memory: MAX_MEMORY,
            kernel: LoadOptions::default(),
            debuginfod: plumb_symbolize::names_debuginfod_servers(),
            command,
        }
        .with_memory(MAX_MEMORY, TABLES_MIB)
    }

    /// Sets the destination of the command's output.
    pub fn printing(mut self, prints: Prints) -> Self {
        self.sampling.prints = prints;
        self
    }

    /// Limits memory to `bytes`, and unwind tables in the kernel to `tables_mib` MiB, or to their share of the memory if that is less.
    pub fn with_memory(mut self, bytes: u64, tables_mib: u16) -> Self {
        self.max_memory = bytes;
        self.sampling.unwind_memory = memory::for_unwinding(bytes);
        self.kernel.table_memory = (usize::from(tables_mib) << 20).min(memory::for_tables(bytes));
        self
    }

    /// Options for looking up names.
    pub fn symbols(&self) -> plumb_symbolize::Options {
        plumb_symbolize::Options {
            debuginfod: self.debuginfod,
            max_memory: Some(memory::for_names(self.max_memory)),
            max_resident: Some(self.max_memory),
            ..Default::default()
        }
    }

    /// The available means for sampling and unwinding.
    pub(crate) fn setup(&self) -> Result<Capturing, RecordError> {
        let options = self.sampling.clone();
        let kernel = LoadOptions { counting: !self.timeline, ..self.kernel };
        let Some(measure) = self.measure else {
            let counting = kernel.counting && capture::aggregates(&self.target);
            let kernel = LoadOptions { counting, ..kernel };
            let (unwinder, note) = capture::kernel_unwinder(self.capture, &options, kernel);
            return Ok(Capturing { options, unwinder, note });
        };
        let walks = self.capture != Capture::Perf;
        let counters = options.counter.iter().chain(options.also.iter().map(|event| &event.counter));
        let places = walks && counters.clone().any(Counter::is_place);
        let samples_beside = walks && counters.count() > 0;
        let measured = Some(measure.measured(options.frequency_hz, walks));
        let load = LoadOptions { measure: measured, samples_beside, places, ..kernel };
        let programs = Programs::load(load).map_err(|error| RecordError::Measure(measure, error))?;
        Ok(Capturing { options, unwinder: Some(Box::new(programs)), note: None })
    }
}

/// The words of a command line, with the variables that it sets.
fn words(launch: &Launch) -> Vec<String> {
    let variables =
        launch.environment.iter().map(|(name, value)| format!("{}={}", name.display(), value.display()));
    let words = [&launch.program].into_iter().chain(&launch.arguments);
    variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect()
}

/// The setup for a request.
pub(crate) struct Capturing {
    pub options: SamplingOptions,
    pub unwinder: Option<Box<dyn KernelUnwinder>>,
    /// The reason why it is less than requested.
    pub note: Option<String>,
}
