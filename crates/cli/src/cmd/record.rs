//! `plumb record`: samples a command, processes or the machine, and writes a recording.
//!
//! Not here: sampling itself (capture-perf), names (symbolize), the file's format (formats).

pub(super) mod capture;
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
mod whom;

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

use crate::terminal::say;
pub(super) use whom::launch;

/// How often the recorder looks around when nothing wakes it: files that the target deletes are opened before.
const STEP: Duration = Duration::from_millis(100);

/// What signals do, for the help of all commands that run one.
pub(super) const CTRL_C: &str = "Ctrl-C is the command's: plumb waits until that has ended, keeps what was measured, and exits with its \
                                 status. The third Ctrl-C kills it.";

/// Arguments of `plumb record`.
#[derive(clap::Args)]
#[command(override_usage = "plumb record [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            plumb record [OPTIONS] -p PID[,PID]...\n       plumb record [OPTIONS] --tree PID\n       \
                            plumb record [OPTIONS] --cgroup PATH\n       plumb record [OPTIONS] --name PROGRAM [--wait]\n       \
                            plumb record [OPTIONS] -a",
    after_help = CTRL_C)]
pub struct Args {
    #[command(flatten)]
    scope: Scope,

    /// End the recording after this many seconds; a command goes on without it
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,

    /// Where to write the recording, - for standard output; one that is there is kept as FILE.old
    ///
    /// Only its owner may read it: it holds command lines. With - what the command prints goes to standard error.
    /// While it is made it is in FILE.part, which plumb report reads should the recorder be killed: all but the last seconds is in it.
    /// Not so with -, a pipe or a device.
    #[arg(short, long, value_name = "FILE", default_value = "profile.plumb")]
    output: PathBuf,

    /// No live line and no summary
    #[arg(short, long)]
    quiet: bool,

    /// Record how long threads were off the processor and why: the event off-cpu has the time that they slept or waited for
    /// something, run-queue the time that they could run and had no processor, each with the stack at which it began
    ///
    /// Who waits already when the recording begins is in it from its beginning, and who still waits at its end until then: a process
    /// that hangs shows where. With -a threads of the kernel are in it once they run.
    ///
    /// It takes BPF (root, Linux 6.1 or newer). Each time has its stack as long as there are few. Beyond -F stacks a second on a
    /// processor only long times have their own; of shorter ones some are taken, and stand for the others. Linux before 6.15 knows
    /// too late how long a time was: then those beyond are shown without a stack.
    #[arg(long, conflicts_with_all = ["event", "count", "user_only", "kernel_only"])]
    off_cpu: bool,

    /// With --off-cpu: leave out times below this, such as 1ms or 50us; the summary says how many, and their sum
    #[arg(long, value_name = "TIME", requires = "off_cpu", value_parser = off_cpu::nanoseconds, default_value = "0")]
    min_block: u64,
}

/// What to record, and how: for all commands that record.
#[derive(clap::Args)]
pub struct Scope {
    /// Where what the command prints goes.
    #[arg(skip)]
    prints: Prints,

    /// Samples per second of processor time; of events that are no clock, per second at most [default: 999]
    #[arg(short = 'F', long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frequency: Option<u32>,

    /// What to take samples by, instead of processor time; several as a list, or by several -e
    ///
    /// Software events: page-faults, minor-faults, major-faults, context-switches, cpu-migrations. Counters of the processor,
    /// where it shows any: cycles, instructions, cache-misses, branch-misses and others. Tracepoints: GROUP:NAME, such as
    /// syscalls:sys_enter_brk. Functions of programs and libraries: uprobe:FILE:FUNCTION, such as uprobe:libc.so.6:malloc, where
    /// FILE is a path, or the name of the command, of a library, or of what the target has mapped; FUNCTION is called as reports
    /// show it, or as the linker calls it, or is an address in the file (0x1139). While one is probed, each call of it costs every
    /// process about a microsecond.
    ///
    /// Each single time is a sample as long as the event is rare. Once it is not, or with -F, so many samples are taken a second at
    /// most, and each counts the times that it stands for: sums stay right. With -c N each Nth time is a sample, however many.
    ///
    /// Of several events each has its own report, and -F and -c hold for all of them.
    #[arg(short = 'e', long, value_name = "EVENT")]
    event: Vec<String>,

    /// Take a sample every so many times that the event happens (nanoseconds of a clock), instead of by frequency
    #[arg(short = 'c', long, value_name = "N", conflicts_with = "frequency",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Record these running processes, with their threads and children, until Ctrl-C or --duration
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ["all", "command"])]
    pid: Vec<u32>,

    /// Record this running process and all its descendants, those that live and those to be born, until the last has ended, Ctrl-C
    /// or --duration
    #[arg(long, value_name = "PID", conflicts_with_all = ["pid", "all", "command"])]
    tree: Option<u32>,

    /// Record what runs in this cgroup and below it, until it is removed, Ctrl-C or --duration: its directory, or its name as in
    /// /proc/PID/cgroup
    #[arg(short = 'G', long, value_name = "PATH", conflicts_with_all = ["pid", "tree", "all", "command"])]
    cgroup: Option<PathBuf>,

    /// Record the processes that run this program now, with their children: a name, or the path of an executable
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["pid", "tree", "cgroup", "all", "command"])]
    name: Option<OsString>,

    /// With --name: wait until a process begins to run it and follow it from its exec, and others that do meanwhile, until all of
    /// them have ended
    #[arg(long, requires = "name")]
    wait: bool,

    /// Record everything that runs, until Ctrl-C or --duration
    #[arg(short, long, conflicts_with = "command")]
    all: bool,

    /// Sample user code only
    #[arg(long, conflicts_with = "kernel_only")]
    user_only: bool,

    /// Sample the kernel only
    #[arg(long)]
    kernel_only: bool,

    /// Guess callers from the words of a stack wherever unwind information is missing, not only where calls confirm them
    #[arg(long)]
    scan: bool,

    /// How stacks are captured
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    capture: capture::Capture,

    /// Keep the time of each sample, which `plumb script` prints and --time selects by: with --capture bpf equal stacks are else
    /// counted in the kernel and share a time; otherwise each sample has its own anyway
    #[arg(long)]
    timeline: bool,

    /// With --capture bpf: memory for unwind tables, in steps of 8; no more than a sixth of --max-memory
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u16).range(8..=512))]
    max_table_memory: u16,

    /// Bound on plumb's own memory, such as 256M or 1G; the summary says so if it could not be kept
    ///
    /// It is a bound on resident memory (VmHWM of the process, mapped BPF tables included). Files that names are read from are opened
    /// one after the other, and what is sampled goes to disk while it is recorded, so that no sample and no name is lost to it. Debug
    /// information for which there is no room is left out: then a file has names but no lines and no inlined calls, and that is said.
    /// Rings of events are the kernel's memory and come on top: at most 16 MiB a processor, 256 MiB together.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = memory::size)]
    max_memory: u64,

    /// Ask debuginfod servers for symbols that are missing here
    #[arg(long)]
    debuginfod: bool,

    /// The command to record, after any VAR=VALUE for its environment
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Scope {
    /// How to record, and what to say first. `timeline`: each sample keeps its time, asked for or not.
    pub(super) fn setup(&self, target: &Target, timeline: bool) -> Result<Capturing> {
        let options = self.options(target)?;
        let (assistant, note) =
            capture::assistant(self.capture, target, &options, self.timeline || timeline, self.table_mib());
        Ok(Capturing { options, assistant, note })
    }

    /// How to record time off the processor, from `min_ns` on.
    fn setup_off_cpu(&self, target: &Target, min_ns: u64) -> Result<Capturing> {
        let options = self.options(target)?;
        let off_cpu = OffCpu {
            min_ns,
            stacks_per_second: options.frequency_hz,
            walks: self.capture != capture::Capture::Perf,
            looks_back: true,
        };
        let programs = plumb_capture_bpf::Options {
            off_cpu: Some(off_cpu),
            ..capture::options(self.timeline, self.table_mib())
        };
        Ok(Capturing { options, assistant: Some(off_cpu::measure(programs)?), note: None })
    }

    fn options(&self, target: &Target) -> Result<Options> {
        let code = match (self.user_only, self.kernel_only) {
            (true, _) => Code::User,
            (_, true) => Code::Kernel,
            _ => Code::All,
        };
        let code_of = |only: Option<Code>| if code == Code::All { only.unwrap_or(code) } else { code };
        let mut counters = event::counters(&self.event, target)?.into_iter();
        let (counter, only) = counters.next().unzip();
        Ok(Options {
            frequency_hz: self.frequency.unwrap_or(Options::default().frequency_hz),
            period: self.count,
            each_if_rare: self.frequency.is_none(),
            code: code_of(only.flatten()),
            also: counters.map(|(counter, only)| (counter, code_of(only))).collect(),
            scan: self.scan,
            keep_tables: true,
            unwind_memory: memory::for_unwinding(self.max_memory),
            counter,
            prints: self.prints.clone(),
            ..Options::default()
        })
    }

    /// MiB for unwind tables in the kernel.
    fn table_mib(&self) -> u16 {
        self.max_table_memory.min(memory::for_tables(self.max_memory))
    }

    /// Whether it says whom to record.
    pub(super) fn names_target(&self) -> bool {
        self.all
            || !self.pid.is_empty()
            || !self.command.is_empty()
            || self.tree.is_some()
            || self.cgroup.is_some()
            || self.name.is_some()
    }

    /// Whom to record.
    pub(super) fn target(&self) -> Result<Target> {
        whom::target(self)
    }

    /// The words of the command, for the recording to remember.
    pub(super) fn words(&self) -> Vec<String> {
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Bytes of memory to stay below.
    pub(super) fn max_memory(&self) -> u64 {
        self.max_memory
    }

    /// Where to look for names.
    pub(super) fn names(&self) -> plumb_symbolize::Options {
        plumb_symbolize::Options {
            debuginfod: self.debuginfod,
            max_memory: Some(memory::for_names(self.max_memory)),
            max_resident: Some(self.max_memory),
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
    let mut memory = Memory::new(args.scope.max_memory);
    note.iter().for_each(|note| say!("{note}"));
    if !matches!(target, Target::Command(_)) && args.duration.is_none() {
        live.note(if args.scope.wait {
            "waiting for it to start; Ctrl-C ends it"
        } else {
            "recording; Ctrl-C ends it"
        });
    }
    let mut names = Names::begin(args.scope.names());
    let mut keeping = Keeping::begin(&output, args.scope.max_memory, args.scope.words());
    let mut looks = Looks { live: &mut live, names: &mut names, memory: &mut memory, keeping: &mut keeping };
    let end = record(&mut recorder, &target, args.duration, &mut looks);
    beside.map_or(Ok(()), TargetObserver::end).context("what watches beside")?;
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

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
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
