//! `plumb kernel`: the distribution of CPU time over user code, each system call, page faults, starts and ends of processes, and
//! interrupts. One table that adds up, with the kernel's own accounting beside it.
//!
//! Elsewhere: the meaning of kernel functions (analyze), the recording (`plumb record`, which this runs).

mod calls;
mod counted;
mod machine;
mod text;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use plumb_analyze::{Filter, KernelTime, View, is_clock};
use plumb_call_watch::{CallWatch, CountedRows};
use plumb_capture_api::TargetObserver;
use plumb_capture_bpf::support;
use plumb_process::Host;
use plumb_profile::Profile;

use crate::advice::{self, processes};
use crate::args::{CaptureMethod, FilterArgs, RecordArgs, TargetArgs};
use crate::examples;
use crate::exit::Exit;
use crate::recording::{self, CTRL_C, prints_beside, record_profile};
use crate::terminal::{Output, finish};
use plumb_documents::kernel_time;

/// Arguments of `plumb kernel`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb kernel [OPTIONS] [FILE]\n       plumb kernel [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb kernel [OPTIONS] -p PID[,PID]...\n       plumb kernel [OPTIONS] --cgroup PATH\n       \
                      plumb kernel [OPTIONS] -a",
    mut_arg("attach", |arg| arg.alias("record-pid")),
    after_help = examples::below(CTRL_C, examples::KERNEL)
)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb", conflicts_with = "target")]
    file: PathBuf,
    /// Show the N hottest stacks of each row (5 if N is left out)
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "5", require_equals = true)]
    stacks: Option<usize>,
    /// Count every system call: errors, bytes; also page faults and context switches
    #[arg(long, conflicts_with = "file")]
    calls: bool,
    /// Measure every system call: duration, CPU time, waiting, preemption; implies --calls
    #[arg(long, conflicts_with = "file")]
    latency: bool,
    /// With --calls or --latency: show the calls of each thread, process or file separately
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
    /// Save the recording to FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Command to record; with --json and --csv its output goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["file", "target"])]
    command: Vec<OsString>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    recording: RecordArgs,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Runs `plumb kernel`.
pub fn run(args: Args) -> Result<Exit> {
    if args.recording.wait && (args.calls || args.latency || args.advice) {
        bail!(
            "--calls, --latency and --advice cannot wait for a program: start it first, or name it as the COMMAND"
        );
    }
    let observes = args.target.names_target() || !args.command.is_empty();
    if args.per.is_some() && !args.calls && !args.latency {
        bail!("--per shows calls apart that are counted (--calls) or measured (--latency)");
    }
    if args.filters.time.is_some() && (args.calls || args.latency) {
        bail!(
            "--calls and --latency sum up calls of the whole recording: --time cannot select a part of them"
        );
    }
    if !observes {
        if args.calls || args.latency {
            bail!("calls are counted while they are made: say whose, by -p, -a, --cgroup or -- COMMAND");
        }
        if args.output.is_some() {
            bail!("-o saves a new recording: select a target with -p, -a, --cgroup or -- COMMAND");
        }
        if args.advice {
            bail!("--advice observes running code: select a target with -p, -a, --cgroup or -- COMMAND");
        }
        let profile = crate::load::load(&args.file, &args.filters.symfs)?;
        return finish(write(&profile, Seen::default(), &args, &mut Output::stdout()));
    }
    let mut sums =
        if args.calls || args.latency { Some(counted::load(args.latency, args.per)?) } else { None };
    // Only kernel unwinding records the system call of a sample.
    let capture = args.recording.capture.or(support(&Host::read()).is_ok().then_some(CaptureMethod::Bpf));
    let recording = RecordArgs { capture, ..args.recording.clone() };
    let request = recording::request(&args.target, &recording, &args.command)?
        .printing(prints_beside(args.json || args.csv));
    let watching = args.advice.then(|| CallWatch::begin(&request.target)).transpose()?;
    let observer = sums.as_mut().map(|sums| sums as &mut dyn TargetObserver);
    let (profile, exit) = record_profile(&request, args.output.as_deref(), observer)?;
    let counted = sums.as_ref().map(|sums| CountedRows::of(sums, &profile));
    finish(write(&profile, Seen { counted, watching }, &args, &mut Output::stdout()))?;
    Ok(exit)
}

/// Measurements besides the samples.
#[derive(Default)]
struct Seen {
    counted: Option<CountedRows>,
    watching: Option<CallWatch>,
}

/// The data of the report.
struct Shown<'p> {
    view: View<'p>,
    filter: Filter,
    time: KernelTime,
    counted: Option<CountedRows>,
}

impl<'p> Shown<'p> {
    fn new(profile: &'p Profile, filter: &Filter, counted: Option<CountedRows>) -> Self {
        let view = View::new(profile, filter);
        let time = kernel_time::of_view(&view, filter);
        Shown { view, filter: filter.clone(), time, counted }
    }
}

impl Shown<'_> {
    /// Whether a row with this name has samples.
    fn has_row(&self, name: &str) -> bool {
        self.time.rows.iter().any(|row| row.name == name)
    }
}

fn write(profile: &Profile, seen: Seen, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let filter = filter(profile, args)?;
    let shown = Shown::new(profile, &filter, seen.counted);
    let calls = seen.watching.map(|watching| watching.advise(profile, &filter)).transpose()?;
    match (args.json, args.csv) {
        (true, _) => machine::json(&shown, calls.as_ref(), &filter, args, out)?,
        (_, true) => machine::csv(&shown, out)?,
        _ => {
            text::write(&shown, args, out)?;
            if let Some(calls) = &calls {
                let has_some = processes::write(profile, &filter, out)?;
                advice::text(calls, has_some, out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The filter for the requested event, or the first event that counts CPU time.
fn filter(profile: &Profile, args: &Args) -> Result<Filter> {
    let mut filters = args.filters.filter_per_event(profile)?;
    let is_of_clock = |filter: &Filter| {
        let event = filter.event.map(|event| &profile.events[event]);
        event.is_none_or(|event| is_clock(profile.strings.get(event.name)))
    };
    let at = filters.iter().position(is_of_clock).unwrap_or(0);
    Ok(filters.swap_remove(at))
}
