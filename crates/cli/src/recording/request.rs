//! A request for a recording, built from the options of a command line, or by a command for its own purpose.
//!
//! Elsewhere: the options themselves (`args`).

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use plumb_capture_api::KernelUnwinder;
use plumb_capture_bpf::OffCpu;
use plumb_capture_perf::{Code, Counter, EventSpec, SamplingOptions};
use plumb_target::{Launch, Prints, Target};

use super::{capture, event, memory, off_cpu};
use crate::args::{EventArgs, RecordArgs, TargetArgs};
use capture::Capture;

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
    /// Off-CPU time is recorded for times of at least this many nanoseconds; together with the requested events, or alone without any.
    pub off_cpu_min_ns: Option<u64>,
    /// Memory limit in bytes.
    pub max_memory: u64,
    /// Limit for unwind tables in the kernel, in MiB.
    pub max_table_memory: u16,
    /// Whether debuginfod servers are queried for missing symbols.
    pub debuginfod: bool,
    /// The words of the command, to be stored in the recording.
    pub command: Vec<String>,
    /// Whether to show no progress.
    pub is_quiet: bool,
}

/// The destination of a command's output if its report goes to standard output. `is_data`: the report is for a program or a file, and must not
/// be mixed with other output.
pub fn prints_beside(is_data: bool) -> Prints {
    if is_data { Prints::AsErrors } else { Prints::Through }
}

impl RecordRequest {
    /// Name of the recorder in recordings.
    pub const RECORDER: &str = concat!("plumb ", env!("CARGO_PKG_VERSION"));

    /// A request to record the CPU time of the target given by options or words, for another command to show.
    ///
    /// # Errors
    /// No target is given, or it does not exist.
    pub fn new(target: &TargetArgs, recording: &RecordArgs, command: &[OsString]) -> Result<Self> {
        let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let whom = target.target(recording.wait, command)?;
        Ok(Self { duration: target.duration, ..Self::of(whom, words, recording) })
    }

    /// A request to record the CPU time of a command.
    pub fn of_command(launch: &Launch, recording: &RecordArgs) -> Self {
        let variables =
            launch.environment.iter().map(|(name, value)| format!("{}={}", name.display(), value.display()));
        let words = [&launch.program].into_iter().chain(&launch.arguments);
        let words = variables.chain(words.map(|word| word.to_string_lossy().into_owned())).collect();
        Self::of(Target::Command(launch.clone()), words, recording)
    }

    /// A request to record the CPU time of a target.
    pub fn of(target: Target, command: Vec<String>, recording: &RecordArgs) -> Self {
        let default = SamplingOptions::default();
        let sampling = SamplingOptions {
            frequency_hz: recording.frequency.unwrap_or(default.frequency_hz),
            each_if_rare: recording.frequency.is_none(),
            scan: recording.scan,
            keep_tables: true,
            unwind_memory: memory::for_unwinding(recording.max_memory),
            ..default
        };
        Self {
            target,
            duration: None,
            sampling,
            capture: recording.capture.unwrap_or_default(),
            timeline: false,
            off_cpu_min_ns: None,
            max_memory: recording.max_memory,
            max_table_memory: recording.max_table_memory,
            debuginfod: recording.debuginfod || plumb_symbolize::names_debuginfod_servers(),
            command,
            is_quiet: true,
        }
    }

    /// Sets the destination of the command's output.
    pub fn printing(mut self, prints: Prints) -> Self {
        self.sampling.prints = prints;
        self
    }

    /// Sets other events, or restricts the code.
    ///
    /// # Errors
    /// The event does not exist, or the target has no such function.
    pub fn with_events(mut self, events: &EventArgs) -> Result<Self> {
        let code = match (events.user_only, events.kernel_only) {
            (true, _) => Code::User,
            (_, true) => Code::Kernel,
            _ => Code::All,
        };
        let code_of = |only: Option<Code>| if code == Code::All { only.unwrap_or(code) } else { code };
        let mut counters = event::counters(&events.event, &self.target)?.into_iter();
        let (counter, only) = counters.next().unzip();
        self.timeline = events.timeline;
        self.sampling.period = events.count;
        self.sampling.code = code_of(only.flatten());
        let event =
            |(counter, only)| EventSpec { counter, code: code_of(only), period: None, is_copied: false };
        self.sampling.also = counters.map(event).collect();
        self.sampling.counter = counter;
        Ok(self)
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
    pub(super) fn setup(&self) -> Result<Capturing> {
        let options = self.sampling.clone();
        let tables = self.max_table_memory.min(memory::for_tables(self.max_memory));
        let Some(min_ns) = self.off_cpu_min_ns else {
            let (unwinder, note) =
                capture::assistant(self.capture, &self.target, &options, self.timeline, tables);
            return Ok(Capturing { options, unwinder, note });
        };
        let walks = self.capture != Capture::Perf;
        let counters = options.counter.iter().chain(options.also.iter().map(|event| &event.counter));
        let places = walks && counters.clone().any(Counter::is_place);
        let samples_beside = walks && counters.count() > 0;
        let off_cpu = OffCpu { min_ns, stacks_per_second: options.frequency_hz, walks, looks_back: true };
        let programs = plumb_capture_bpf::LoadOptions {
            off_cpu: Some(off_cpu),
            samples_beside,
            places,
            ..capture::options(self.timeline, tables)
        };
        Ok(Capturing { options, unwinder: Some(off_cpu::measure(programs)?), note: None })
    }
}

/// The setup for a request.
pub(super) struct Capturing {
    pub options: SamplingOptions,
    pub unwinder: Option<Box<dyn KernelUnwinder>>,
    /// The reason why it is less than requested.
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_the_options_say() {
        let words: Vec<OsString> = ["A=b", "sh", "-c", "true"].map(Into::into).into();
        let target = TargetArgs { duration: Some(Duration::from_millis(1500)), ..TargetArgs::default() };
        let recording =
            RecordArgs { frequency: Some(99), capture: Some(Capture::Bpf), ..RecordArgs::default() };
        let request = RecordRequest::new(&target, &recording, &words).expect("it names a command");
        assert_eq!(request.duration, target.duration);
        assert_eq!((request.sampling.frequency_hz, request.capture), (99, Capture::Bpf));
        assert_eq!(request.command, ["A=b", "sh", "-c", "true"]);
        let Target::Command(launch) = &request.target else { panic!("{:?}", request.target) };
        assert_eq!(RecordRequest::of_command(launch, &recording).command, request.command);
        let pids = TargetArgs { attach: vec![1, 2], ..TargetArgs::default() };
        let request = RecordRequest::new(&pids, &recording, &[]).expect("it names processes");
        assert!(matches!(&request.target, Target::Processes(pids) if *pids == [1, 2]));
        assert!(RecordRequest::new(&TargetArgs::default(), &recording, &[]).is_err());
    }
}
