//! `plumb record`: samples a command, processes or the machine, and writes a recording.
//!
//! Not here: sampling itself (capture-perf), names (symbolize), the file's format (formats).

pub(crate) mod capture;
pub(crate) mod causes;
mod event;
mod headline;
mod interpreted;
mod keeping;
mod live;
pub(super) mod memory;
mod nameless;
mod names;
pub(super) mod notice;
pub(super) mod off_cpu;
pub(super) mod once;
pub(super) mod output;
pub(crate) mod runtimes;
pub(crate) mod told;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use plumb_capture_api::{KernelUnwinder, TargetObserver};
use plumb_capture_bpf::OffCpu;
use plumb_capture_perf::{Code, Options, Recorded, Recorder};
use plumb_target::{End, Prints, Running, Target};

use keeping::Keeping;
use live::Live;
use memory::Memory;
use names::Names;
use output::Output;

use crate::args::{EventArgs, RecordArgs, TargetArgs, value};
use crate::examples;
use crate::terminal::say;

/// How often the recorder looks around when nothing wakes it: files that the target deletes are opened before.
const STEP: Duration = Duration::from_millis(100);

/// What signals do, for the help of all commands that run one.
pub(super) const CTRL_C: &str = "Ctrl-C goes to the command: plumb waits until the command ends, keeps what was measured, and exits \
                                 with the command's status. The third Ctrl-C kills the command.";

/// Arguments of `plumb record`.
#[derive(clap::Args)]
#[command(mut_arg("attach", |arg| arg.alias("pid")), override_usage = "plumb record [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            plumb record [OPTIONS] -p PID[,PID]...\n       plumb record [OPTIONS] --tree PID\n       \
                            plumb record [OPTIONS] --cgroup PATH\n       plumb record [OPTIONS] --name PROGRAM [--wait]\n       \
                            plumb record [OPTIONS] -a",
    after_help = examples::below(CTRL_C, examples::RECORD))]
pub struct Args {
    /// Output file, - for standard output; an existing file is renamed to FILE.old
    ///
    /// Only its owner can read the file, because it contains command lines. While recording, the data is in FILE.part: if the
    /// recorder is killed, plumb report reads that file, which lacks only the last seconds. With -, a pipe or a device there is no
    /// such file. With -, the command's standard output goes to standard error.
    #[arg(short, long, value_name = "FILE", default_value = "profile.plumb")]
    output: PathBuf,

    /// Do not print the live line and the summary
    #[arg(short, long)]
    quiet: bool,

    /// Record how long threads are off the CPU, and where: blocked or in the run queue
    ///
    /// The event off-cpu counts the time that threads were blocked, run-queue the time that they were runnable without a CPU. Each
    /// interval has the stack at which it began.
    ///
    /// A thread that is already blocked when the recording begins counts from its beginning; a thread that is still blocked when the
    /// recording ends counts until its end. So a process that hangs shows where. With -a, kernel threads are included once they run.
    ///
    /// Requires BPF (root, Linux 6.1 or newer). Up to -F intervals per second and CPU have a stack each. Beyond that rate, only long
    /// intervals have their own stack; of shorter ones some are sampled and represent the others. Before Linux 6.15 the length of an
    /// interval is known too late for that: intervals beyond the rate have no stack.
    #[arg(long, conflicts_with_all = ["event", "count", "user_only", "kernel_only"])]
    off_cpu: bool,

    /// With --off-cpu: ignore intervals shorter than TIME (1ms, 50us)
    ///
    /// The summary reports their number and their total time.
    #[arg(long, value_name = "TIME", requires = "off_cpu", value_parser = value::nanoseconds, default_value = "0")]
    min_block: u64,

    #[command(flatten)]
    scope: Scope,
}

/// What to record, and how, where a command line says it.
#[derive(clap::Args)]
pub struct Scope {
    /// Where what the command prints goes.
    #[arg(skip)]
    prints: Prints,

    /// Command to record, after any VAR=VALUE for its environment
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        conflicts_with = "target"
    )]
    command: Vec<OsString>,

    #[command(flatten)]
    pub(super) target: TargetArgs,

    #[command(flatten)]
    recording: RecordArgs,

    #[command(flatten)]
    events: EventArgs,
}

impl Scope {
    /// How to record, and what to say first. `timeline`: each sample keeps its time, asked for or not.
    pub(super) fn setup(&self, target: &Target, timeline: bool) -> Result<Capturing> {
        let options = self.options(target)?;
        let (assistant, note) = capture::assistant(
            self.recording.capture.unwrap_or_default(),
            target,
            &options,
            self.events.timeline || timeline,
            self.table_mib(),
        );
        Ok(Capturing { options, assistant, note })
    }

    /// How to record time off the processor, from `min_ns` on.
    fn setup_off_cpu(&self, target: &Target, min_ns: u64) -> Result<Capturing> {
        let options = self.options(target)?;
        let off_cpu = OffCpu {
            min_ns,
            stacks_per_second: options.frequency_hz,
            walks: self.recording.capture.unwrap_or_default() != capture::Capture::Perf,
            looks_back: true,
        };
        let programs = plumb_capture_bpf::Options {
            off_cpu: Some(off_cpu),
            ..capture::options(self.events.timeline, self.table_mib())
        };
        Ok(Capturing { options, assistant: Some(off_cpu::measure(programs)?), note: None })
    }

    fn options(&self, target: &Target) -> Result<Options> {
        let code = match (self.events.user_only, self.events.kernel_only) {
            (true, _) => Code::User,
            (_, true) => Code::Kernel,
            _ => Code::All,
        };
        let code_of = |only: Option<Code>| if code == Code::All { only.unwrap_or(code) } else { code };
        let mut counters = event::counters(&self.events.event, target)?.into_iter();
        let (counter, only) = counters.next().unzip();
        Ok(Options {
            frequency_hz: self.recording.frequency.unwrap_or(Options::default().frequency_hz),
            period: self.events.count,
            each_if_rare: self.recording.frequency.is_none(),
            code: code_of(only.flatten()),
            also: counters.map(|(counter, only)| (counter, code_of(only))).collect(),
            scan: self.recording.scan,
            keep_tables: true,
            unwind_memory: memory::for_unwinding(self.recording.max_memory),
            counter,
            prints: self.prints.clone(),
            ..Options::default()
        })
    }

    /// MiB for unwind tables in the kernel.
    fn table_mib(&self) -> u16 {
        self.recording.max_table_memory.min(memory::for_tables(self.recording.max_memory))
    }

    /// Whether it says whom to record.
    pub(super) fn names_target(&self) -> bool {
        self.target.names_target() || !self.command.is_empty()
    }

    /// Whom to record.
    pub(super) fn target(&self) -> Result<Target> {
        self.target.target(self.recording.wait, &self.command)
    }

    /// The words of the command, for the recording to remember.
    pub(super) fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Bytes of memory to stay below.
    pub(super) fn max_memory(&self) -> u64 {
        self.recording.max_memory
    }

    /// Where to look for names.
    pub(super) fn names(&self) -> plumb_symbolize::Options {
        plumb_symbolize::Options {
            debuginfod: self.recording.debuginfod,
            max_memory: Some(memory::for_names(self.recording.max_memory)),
            max_resident: Some(self.recording.max_memory),
            ..Default::default()
        }
    }
}

/// How to record.
pub(super) struct Capturing {
    pub options: Options,
    pub assistant: Option<Box<dyn KernelUnwinder>>,
    /// Why that is less than what was asked for.
    pub note: Option<String>,
}

/// Runs `plumb record`.
pub fn run(args: Args) -> Result<ExitCode> {
    run_beside(args, None)
}

/// Likewise with something that watches the target beside.
fn run_beside(mut args: Args, mut beside: Option<&mut dyn TargetObserver>) -> Result<ExitCode> {
    plumb_capture_perf::return_freed_memory();
    let target = args.scope.target()?;
    let output = Output::check(&args.output)?;
    if output.is_stdout() && matches!(args.scope.prints, Prints::Through) {
        args.scope.prints = Prints::AsErrors;
    }
    let Capturing { options, assistant, note } = match args.off_cpu {
        true => args.scope.setup_off_cpu(&target, args.min_block)?,
        false => args.scope.setup(&target, false)?,
    };
    let also = beside.as_mut().map(|beside| &mut **beside as &mut dyn TargetObserver);
    let mut recorder = match Recorder::start_beside(&target, &options, assistant, also) {
        Ok(recorder) => recorder,
        Err(error) => {
            say!("{error}");
            return Ok(ExitCode::from(error.exit_code()));
        }
    };
    let mut live = Live::new(args.quiet);
    let mut memory = Memory::new(args.scope.recording.max_memory);
    note.iter().for_each(|note| say!("{note}"));
    if !matches!(target, Target::Command(_)) && args.scope.target.duration.is_none() {
        live.note(if args.scope.recording.wait {
            "waiting for it to start; Ctrl-C ends it"
        } else {
            "recording; Ctrl-C ends it"
        });
    }
    let mut names = Names::begin(args.scope.names());
    let mut keeping = Keeping::begin(&output, args.scope.recording.max_memory, args.scope.words());
    let mut looks = Looks { live: &mut live, names: &mut names, memory: &mut memory, keeping: &mut keeping };
    let end = record(&mut recorder, &target, args.scope.target.duration, &mut looks);
    beside.map_or(Ok(()), TargetObserver::end).context("the observer of the target failed")?;
    let recorded = recorder.finish();
    live.clear();
    // Names take what the recorder had.
    plumb_capture_perf::trim_memory();
    let written = write(&args, recorded, names, keeping, &output, &mut live);
    if let Some(text) = memory.exceeded().filter(|_| !args.quiet) {
        say!("{text}");
    }
    let (running, written) = match written {
        Ok(running) => (running, true),
        Err(error) => {
            say!("{error:#}");
            (None, false)
        }
    };
    let code = match end? {
        // The time is up, and the command goes on: it has the terminal, so stay until it has ended.
        None => running.map_or(0, |running| code_of(wait(running, &target), true)),
        Some(end) => {
            if let (Some(_), Target::Command(launch)) = (running, &target) {
                say!("{} has not ended: it goes on, and is no longer recorded", launch.name());
            }
            code_of(end, matches!(target, Target::Command(_)))
        }
    };
    Ok(ExitCode::from(if written || code != 0 { code } else { 1 }))
}

/// Waits for a command that outlives its recording.
pub(super) fn wait(running: Running, target: &Target) -> End {
    running.wait(|notice| notice::say_of(target, notice)).unwrap_or(End::Gone)
}

/// The exit code for an end: a command's is that of the command.
pub(super) fn code_of(end: End, is_command: bool) -> u8 {
    match end {
        End::Exited(status) => exit_code(status),
        End::Signal(number) if is_command => 128 + number as u8,
        End::Signal(_) | End::Gone => 0,
    }
}

/// Who looks at a recording while it goes on.
struct Looks<'a> {
    live: &'a mut Live,
    names: &'a mut Names,
    memory: &'a mut Memory,
    keeping: &'a mut Keeping,
}

/// Records until an end, `None`: until the time is up.
fn record(
    recorder: &mut Recorder,
    target: &Target,
    duration: Option<Duration>,
    looks: &mut Looks<'_>,
) -> Result<Option<End>> {
    loop {
        let left = duration.map(|duration| duration.saturating_sub(recorder.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let end = recorder.step(left.map_or(STEP, |left| left.min(STEP)))?;
        if end.is_some() {
            return Ok(end);
        }
        if let Some(notice) = recorder.notice() {
            looks.live.clear();
            notice::say_of(target, notice);
        }
        if recorder.is_waiting() {
            continue;
        }
        looks.live.show(recorder.elapsed(), recorder.statistics());
        looks.names.look(recorder);
        if looks.memory.is_due() {
            recorder.meanwhile(|_| looks.memory.look());
        }
        looks.keeping.look(recorder, looks.memory.is_scarce());
    }
}

/// Finds names, writes the recording and says what was recorded. Gives back a command that still runs.
fn write(
    args: &Args,
    recorded: Recorded,
    mut names: Names,
    mut keeping: Keeping,
    output: &Output,
    live: &mut Live,
) -> Result<Option<Running>> {
    let Recorded { mut profile, target_cpu, setup, running, left, handed_over, unmeasured, vanished, .. } =
        recorded;
    profile.meta.warnings.extend(unmeasured.iter().flat_map(off_cpu::left_out));
    profile.meta.recorder = concat!("plumb ", env!("CARGO_PKG_VERSION")).into();
    profile.meta.command = args.scope.words();
    profile.meta.warnings.extend(keeping.failure());
    let recording = plumb_process::usage::own_cpu_time().total().saturating_sub(names.early());
    names.close(&profile, &vanished);
    // Names are there by now, but for those of large files met last, or of a server. Where they take longer the recording
    // is first written without: should finding them be interrupted, or need more disk than there is, this stays.
    let is_early = !names.are_found() && output.is_replaceable();
    let mut written = if is_early { Some(keeping.write(&profile, output)?) } else { None };
    names.store(&mut profile, live);
    live.clear();
    // Tables are made once more as they are written: what names took is free by now.
    plumb_capture_perf::trim_memory();
    if args.off_cpu {
        off_cpu::name_reasons(&mut profile);
    }
    let own = plumb_process::usage::own_cpu_time().total();
    profile.meta.recorder_cpu_ns = u64::try_from(own.as_nanos()).ok();
    let written = match written.take() {
        None => keeping.write(&profile, output)?,
        Some(mut written) => {
            if let Err(error) = keeping.replace(&profile, &mut written) {
                say!("{error:#}\nplumb: the recording is there, but without symbols");
            }
            written
        }
    };
    let earlier = keeping.end().walked_in_kernel(handed_over.is_some());
    if !args.quiet {
        headline::print((&profile, &earlier), &setup, target_cpu, recording, &written);
        handed_over.iter().filter_map(capture::line).for_each(|line| say!("{line}"));
    } else {
        notice::say_left(Some(left));
        if written.is_elsewhere() {
            say!("{}", written.text());
        }
    }
    Ok(running)
}

/// The exit status as a shell gives it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_statuses_are_those_of_a_shell() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(15)), 143);
    }
}
