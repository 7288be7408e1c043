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
use crate::filters::FilterArgs;
use crate::terminal::{Output, finish};

/// Arguments of `plumb kernel`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb kernel [OPTIONS] [FILE]\n       plumb kernel [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb kernel [OPTIONS] -p PID[,PID]...\n       plumb kernel [OPTIONS] --cgroup PATH\n       \
                      plumb kernel [OPTIONS] -a",
    after_help = record::CTRL_C
)]
pub struct Args {
    /// The recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Show for each row the stacks that lead there, so many of them
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "5", require_equals = true)]
    stacks: Option<usize>,
    /// Count system calls too, each one: errors by their names, bytes; page faults and context switches
    #[arg(long, conflicts_with = "file")]
    calls: bool,
    /// Measure each system call too: how long it took, on the processor and off it, waiting or preempted; implies --calls
    #[arg(long, conflicts_with = "file")]
    time: bool,
    /// Show the calls of each thread, process or file apart, with --calls or --time
    #[arg(long, value_name = "WHAT", value_enum)]
    per: Option<counted::Apart>,
    /// Watch system calls and page faults one by one, and say what to do about them; slows the target where it makes very many
    #[arg(long, conflicts_with_all = ["file", "csv"])]
    advice: bool,
    /// Full names, also where they are longer than the terminal is wide
    #[arg(long)]
    full_names: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    /// Samples per second of processor time, of what is recorded now. What N samples say is right to about 1 in the square root of
    /// N: more a second make small rows surer
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 999,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frequency: u32,
    /// Record everything that runs now, until Ctrl-C or --duration
    #[arg(short, long, conflicts_with_all = ["file", "command"])]
    all: bool,
    /// Record these running processes now, with their children, until Ctrl-C or --duration
    #[arg(short = 'p', long = "record-pid", value_name = "PID", value_delimiter = ',',
          conflicts_with_all = ["file", "command", "all"])]
    record_pid: Vec<u32>,
    /// Record what runs in this cgroup and below it now, as for `plumb record`
    #[arg(short = 'G', long, value_name = "PATH", conflicts_with_all = ["file", "command", "all", "record_pid"])]
    cgroup: Option<PathBuf>,
    /// How stacks are captured, as for `plumb record` [default: bpf where it can be had, else perf]
    #[arg(long, value_name = "HOW")]
    capture: Option<String>,
    /// End the recording after this many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Keep the recording, for `plumb report` and the others
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The command to record now; with --json and --csv what it prints goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "file")]
    command: Vec<OsString>,
    #[command(flatten)]
    part: Part,
}

/// Which part of a profile to look at: of the filters of all readers those that are no option of this command.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Filters (TEXT is exact, /TEXT/ a regular expression)")]
struct Part {
    /// Only threads with this name
    #[arg(long, value_name = "TEXT")]
    comm: Vec<String>,
    /// Only processes that run this executable: its path or the last part of it
    #[arg(long, value_name = "TEXT")]
    exe: Vec<String>,
    /// Only this thread: its id or its name
    #[arg(long, value_name = "TID|TEXT")]
    thread: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Only samples taken on these processors, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cpu: Option<String>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Only stacks with a frame that matches
    #[arg(long, value_name = "REGEX")]
    focus: Vec<String>,
    /// No stacks with a frame that matches
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
            bail!("-o keeps what is recorded now: say whom, by -p, -a, --cgroup or -- COMMAND");
        }
        if args.advice {
            bail!("--advice watches what runs now: say whom, by -p, -a, --cgroup or -- COMMAND");
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
