//! `plumb kernel`: where processor time went: user code, each system call, page faults, the beginnings and ends of processes,
//! interrupts. One table that is closed, with the kernel's own account beside it.
//!
//! Not here: what the functions of the kernel mean (analyze), the recording (`plumb record`, which this runs).

mod calls;
mod counted;
mod machine;
pub(super) mod text;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use plumb_analyze::{Cause, Filter, KernelRow, KernelTime, View, is_clock};
use plumb_capture_api::TargetObserver;
use plumb_capture_bpf::support;
use plumb_process::Host;
use plumb_profile::Profile;
use plumb_syscalls::Abi;
use plumb_target::Target;

use self::counted::Counted;
use crate::cmd::advice::{self, Watching};
use crate::cmd::procs;
use crate::cmd::record::{
    self,
    once::{Once, prints_beside},
};
use crate::examples;
use crate::filters::FilterArgs;
use crate::terminal::{Output, finish};

/// Arguments of `plumb kernel`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb kernel [OPTIONS] [FILE]\n       plumb kernel [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb kernel [OPTIONS] -p PID[,PID]...\n       plumb kernel [OPTIONS] --cgroup PATH\n       \
                      plumb kernel [OPTIONS] -a",
    after_help = examples::below(record::CTRL_C, examples::KERNEL)
)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Show the N hottest stacks of each row (5 if N is left out)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "5", require_equals = true)]
    stacks: Option<usize>,
    /// Count every system call: errors, bytes; also page faults and context switches
    #[arg(long, conflicts_with = "file")]
    calls: bool,
    /// Measure every system call: duration, CPU time, waiting, preemption; implies --calls
    #[arg(long, conflicts_with = "file")]
    time: bool,
    /// With --calls or --time: show the calls of each thread, process or file separately
    #[arg(long, value_name = "KEY", value_enum)]
    per: Option<counted::Apart>,
    /// Observe every system call and page fault, and suggest improvements; adds overhead per call
    #[arg(long, conflicts_with_all = ["file", "csv"])]
    advice: bool,
    /// Show full names and paths, without shortening
    #[arg(long)]
    full_names: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Sampling frequency, in samples per second of CPU time
    ///
    /// The relative error of a row of N samples is about 1/sqrt(N): a higher frequency makes small rows more accurate.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 999,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frequency: u32,
    /// Record the whole machine, until Ctrl-C or --duration
    #[arg(short, long, conflicts_with_all = ["file", "command"])]
    all: bool,
    /// Record these processes with their threads and children, until Ctrl-C or --duration
    #[arg(short = 'p', long = "record-pid", value_name = "PID", value_delimiter = ',',
          conflicts_with_all = ["file", "command", "all"])]
    record_pid: Vec<u32>,
    /// Record this cgroup and all cgroups below it, until it is removed, Ctrl-C or --duration
    ///
    /// PATH is a directory, or a name as in /proc/PID/cgroup.
    #[arg(short = 'G', long, value_name = "PATH", conflicts_with_all = ["file", "command", "all", "record_pid"])]
    cgroup: Option<PathBuf>,
    /// Method of capturing stacks, as in `plumb record` [default: bpf where available, otherwise perf]
    #[arg(long, value_name = "METHOD")]
    capture: Option<String>,
    /// Stop after SECONDS; a command keeps running
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Save the recording to FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Command to record; with --json and --csv its output goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "file")]
    command: Vec<OsString>,
    #[command(flatten)]
    part: Part,
}

/// Which part of a profile to look at: of the filters of all readers those that are no option of this command.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Filters (TEXT matches exactly, /TEXT/ is a regular expression)")]
struct Part {
    /// Only threads with this name
    #[arg(long, value_name = "TEXT")]
    comm: Vec<String>,
    /// Only processes running this executable (path or file name)
    #[arg(long, value_name = "TEXT")]
    exe: Vec<String>,
    /// Only this thread (ID or name)
    #[arg(long, value_name = "TID|TEXT")]
    thread: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Only samples taken on these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Only stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    focus: Vec<String>,
    /// Drop stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    ignore: Vec<String>,
}

impl Part {
    fn filters(&self) -> FilterArgs {
        let Part { comm, exe, thread, pid, cpu, event, focus, ignore } = self.clone();
        FilterArgs { comm, exe, thread, pid, cpu, event, focus, ignore, ..FilterArgs::default() }
    }
}

/// Runs `plumb kernel`.
pub fn run(args: Args) -> Result<ExitCode> {
    let whom = whom(&args);
    if args.per.is_some() && !args.calls && !args.time {
        bail!("--per shows calls apart that are counted (--calls) or measured (--time)");
    }
    if whom.is_empty() && args.command.is_empty() {
        if args.calls || args.time {
            bail!("calls are counted while they are made: say whose, by -p, -a, --cgroup or -- COMMAND");
        }
        if args.output.is_some() {
            bail!("-o saves a new recording: select a target with -p, -a, --cgroup or -- COMMAND");
        }
        if args.advice {
            bail!("--advice observes running code: select a target with -p, -a, --cgroup or -- COMMAND");
        }
        let profile = crate::load::load(&args.file)?;
        return finish(write(&profile, Seen::default(), &args, &mut Output::stdout()));
    }
    let mut sums = if args.calls || args.time { Some(counted::load(&args)?) } else { None };
    let once = Once {
        frequency: args.frequency,
        duration: args.duration,
        // Which call a sample was in is known in no other way.
        capture: args.capture.as_deref().or(support(&Host::read()).is_ok().then_some("bpf")),
        whom,
        command: &args.command,
        prints: prints_beside(args.json || args.csv),
        output: args.output.as_deref(),
    };
    let watching = args.advice.then(|| Watching::begin(&target(&args)?)).transpose()?;
    match once.record(sums.as_mut().map(|sums| sums as &mut dyn TargetObserver))? {
        Ok((profile, code)) => {
            let counted = sums.as_ref().map(|sums| Counted::of(sums, &profile));
            finish(write(&profile, Seen { counted, watching }, &args, &mut Output::stdout()))?;
            Ok(code)
        }
        Err(code) => Ok(code),
    }
}

/// Whom to record, in the words of `plumb record`; of a command nothing.
fn whom(args: &Args) -> Vec<OsString> {
    if args.all {
        return vec!["--all".into()];
    }
    if let Some(cgroup) = &args.cgroup {
        return vec!["--cgroup".into(), cgroup.into()];
    }
    if args.record_pid.is_empty() {
        return Vec::new();
    }
    let pids: Vec<String> = args.record_pid.iter().map(u32::to_string).collect();
    vec!["--pid".into(), pids.join(",").into()]
}

/// What was seen beside the samples.
#[derive(Default)]
struct Seen {
    counted: Option<Counted>,
    watching: Option<Watching>,
}

/// What is shown.
struct Shown<'p> {
    view: View<'p>,
    time: KernelTime,
    counted: Option<Counted>,
}

impl<'p> Shown<'p> {
    fn new(profile: &'p Profile, filter: &Filter, counted: Option<Counted>) -> Self {
        let view = View::new(profile, filter);
        let time = time_of(&view, filter);
        Shown { view, time, counted }
    }
}

impl Shown<'_> {
    /// Whether samples hit a row of this name.
    fn has_row(&self, name: &str) -> bool {
        self.time.rows.iter().any(|row| row.name == name)
    }
}

/// Where the time of a view went.
fn time_of(view: &View<'_>, filter: &Filter) -> KernelTime {
    KernelTime::new(view, filter, call_names(view.profile()))
}

/// The names of system calls by number, on the machine of a recording.
pub(super) fn call_names(profile: &Profile) -> impl Fn(u32) -> Option<&'static str> + use<> {
    let abi = abi(&profile.meta.arch);
    move |number| plumb_syscalls::name(abi?, number)
}

/// Likewise for other reports; `None`: there is nothing to say of the kernel, or of time.
pub(super) fn section(view: &View<'_>, filter: &Filter) -> Option<KernelTime> {
    let says_more = |row: &KernelRow| !matches!(row.cause, Cause::User | Cause::Other | Cause::Idle);
    Some(time_of(view, filter)).filter(|time| time.is_time && time.rows.iter().any(says_more))
}

/// By which numbers programs of a machine call their kernel.
pub(super) fn abi(arch: &str) -> Option<Abi> {
    match arch {
        "x86_64" => Some(Abi::X86_64),
        "aarch64" => Some(Abi::Aarch64),
        _ => None,
    }
}

/// Whom to watch.
fn target(args: &Args) -> Result<Target> {
    Ok(match &args.cgroup {
        _ if args.all => Target::Machine,
        Some(cgroup) => Target::Cgroup(cgroup.clone()),
        None if !args.record_pid.is_empty() => Target::Processes(args.record_pid.clone()),
        None => Target::Command(record::launch(&args.command)?),
    })
}

fn write(profile: &Profile, seen: Seen, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let filter = filter(profile, args)?;
    let shown = Shown::new(profile, &filter, seen.counted);
    let verdict = seen.watching.map(|watching| watching.judge(profile, &shown.time)).transpose()?;
    match (args.json, args.csv) {
        (true, _) => machine::json(&shown, verdict.as_ref(), &filter, args, out)?,
        (_, true) => machine::csv(&shown, out)?,
        _ => {
            text::write(&shown, args, out)?;
            if let Some(verdict) = &verdict {
                let has_some = procs::write_advice(profile, &filter, out)?;
                advice::text(verdict, has_some, out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The event that was asked for, or else the first that goes by processor time.
fn filter(profile: &Profile, args: &Args) -> Result<Filter> {
    let mut filters = args.part.filters().filter_per_event(profile)?;
    let is_of_clock = |filter: &Filter| {
        let event = filter.event.map(|event| &profile.events[event]);
        event.is_none_or(|event| is_clock(profile.strings.get(event.name)))
    };
    let at = filters.iter().position(is_of_clock).unwrap_or(0);
    Ok(filters.swap_remove(at))
}
