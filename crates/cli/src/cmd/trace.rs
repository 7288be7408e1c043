//! `plumb trace`: system calls as they are made.
//!
//! Elsewhere: recording calls (capture-bpf), the meaning of arguments (syscalls).

mod line;
mod select;
mod shown;
mod stacks;
mod summaries;
mod watched;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use plumb_capture_bpf::{CallCounts, CallFilter, Calls, LoadError};
use plumb_process::pidfd;
use plumb_process::usage::monotonic_ns;
use plumb_target::{Cgroup, Descendants, End, Joiners, Target};

use crate::args::{CommandArgs, TargetArgs, value};
use crate::examples;
use crate::exit::Exit;
use crate::recording::{self, notice};
use crate::terminal::say;
use select::Selection;
use shown::Shown;
use summaries::Wanted;
use watched::Watched;

/// Time between two reads of the ring, after one that found calls and after one that found none.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// Help of `--cgroup`, which covers less here than in a recording.
const CGROUP: &str = "Observe the processes now in this cgroup or below it, and their children";

/// Arguments of `plumb trace`.
#[derive(clap::Args)]
#[command(mut_arg("attach", |arg| arg.alias("pid")), mut_arg("cgroup", |arg| arg.help(CGROUP)),
    override_usage = "plumb trace [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            plumb trace [OPTIONS] -p PID[,PID]...\n       plumb trace [OPTIONS] --tree PID\n       plumb trace [OPTIONS] --cgroup PATH\n       \
                            plumb trace [OPTIONS] --name PROGRAM\n       \
                            plumb trace [OPTIONS] -a",
    after_help = examples::below(recording::CTRL_C, examples::TRACE))]
pub struct Args {
    /// System calls to trace: a list of names and groups; ! before the first excludes them
    ///
    /// Groups: %file (calls that take a path), %desc (calls that take a descriptor), %net, %memory, %process, %signal, %ipc.
    #[arg(short = 'e', long = "syscall", alias = "calls", value_name = "CALL,...", value_delimiter = ',')]
    calls: Vec<String>,

    /// Only calls lasting at least TIME (1ms, 50us)
    #[arg(long, value_name = "TIME", value_parser = value::nanoseconds, default_value = "0")]
    min_time: u64,

    /// Only calls that fail
    #[arg(long)]
    failed: bool,

    /// Print a table by call instead of lines: number, errors, latencies
    #[arg(long)]
    summary: bool,

    /// Print latencies over time as a heat map instead of lines
    #[arg(long)]
    histogram: bool,

    /// Print periodic calls and bursts instead of lines: rate, number, duration, buffers
    #[arg(long)]
    spikes: bool,

    /// Print JSON
    ///
    /// One object per line.
    #[arg(long)]
    json: bool,

    /// Show the stack of each call; lines are printed at the end
    ///
    /// Each call that -e selects stops for a few microseconds, shown or not: select few.
    #[arg(long, conflicts_with_all = ["summary", "histogram", "spikes"])]
    stack: bool,

    /// Bytes of buffers shown
    #[arg(short, long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u16).range(0..=1024))]
    strings: u16,

    /// Memory for calls not yet printed; calls that do not fit are lost and counted
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,

    #[command(flatten)]
    command: CommandArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `plumb trace`.
pub fn run(args: Args) -> Result<Exit> {
    let wanted = Wanted { summary: args.summary, histogram: args.histogram, spikes: args.spikes };
    let plainly = !wanted.looks_at_arguments();
    let selection = Selection::parse(&args.calls, args.strings, plainly)?;
    if !args.target.names_target() && args.command.words.is_empty() {
        bail!(
            "nothing to trace: name a command, or processes (-p PID, --tree PID, --name PROGRAM, --cgroup PATH), or everything (-a)"
        );
    }
    let target = args.target.target(false, &args.command.words)?;
    let mut calls = load(&args)?;
    selection.unknown.iter().filter(|_| !plainly).for_each(|why| say!("{why}"));
    selection.each(plainly, |abi, number, want| calls.want(abi, number, want))?;
    let events = args.stack.then(|| selection.tracepoints());
    let mut watched = Watched::find(&target, events, &mut calls)?;
    let mut shown = Shown::new(&args, wanted, selection, watched.pids());
    watched.begin(&mut calls)?;
    let end = watch(&args, &target, &mut calls, &mut watched, &mut shown);
    let written = finish(&mut calls, &mut shown);
    let (profile, command) = watched.end();
    let written = written.and_then(|()| shown.finish(profile.as_ref()));
    let end = match (end, written) {
        (Ok(end), Ok(())) => end,
        // The reader of the output has closed it.
        (Err(error), _) | (_, Err(error)) if is_broken_pipe(&error) => Some(End::Gone),
        (Err(error), _) | (_, Err(error)) => return Err(error),
    };
    say(&calls, profile.map_or(0, |profile| profile.meta.lost_samples));
    if let (Target::Command(launch), Some(End::Exited(_))) = (&target, end) {
        notice::say_left(Some(Descendants::new(launch.name(), followed(&calls)).staying()));
    }
    if end.is_none() {
        command.end(&target);
    }
    let is_command = matches!(target, Target::Command(_));
    Ok(end.map_or(Exit::Success, |end| Exit::of_end(end, is_command)))
}

fn load(args: &Args) -> Result<Calls> {
    let filter = CallFilter {
        min_ns: args.min_time,
        failed_only: args.failed,
        counts_met: false,
        ring_bytes: (args.buffer << 20).next_power_of_two(),
    };
    let mut calls = Calls::load(filter).map_err(|error| refusal(&error))?;
    calls.calibrate()?;
    Ok(calls)
}

fn refusal(error: &LoadError) -> anyhow::Error {
    anyhow!(
        "system calls can't be traced: {error}{}\
         \n  without:  plumb record -e context-switches, or strace for your own processes, which slows them down",
        error.remedy()
    )
}

/// Shows calls until an end; `None`: the time is up.
fn watch(
    args: &Args,
    target: &Target,
    calls: &mut Calls,
    watched: &mut Watched,
    shown: &mut Shown,
) -> Result<Option<End>> {
    let begin = monotonic_ns();
    let mut is_busy = false;
    let cgroup = match target {
        Target::Cgroup(path) => Cgroup::find(path).ok(),
        _ => None,
    };
    let mut joiners = Joiners::default();
    loop {
        let left = args.target.duration.map(|duration| {
            duration.saturating_sub(Duration::from_nanos(monotonic_ns().saturating_sub(begin)))
        });
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
        let step = if is_busy { LOOKS.0 } else { LOOKS.1 };
        let end = watched.wait(calls, is_busy, left.map_or(step, |left| left.min(step)))?;
        is_busy = look(calls, shown)?;
        let joined = cgroup.as_ref().map(|cgroup| joiners.look(cgroup)).unwrap_or_default();
        // A process that has exited makes no more calls.
        joined.into_iter().filter_map(|pid| pidfd(pid).ok()).for_each(|pid| drop(calls.follow(pid.as_fd())));
        // Descendants that started since then are traced on.
        if matches!((target, end), (Target::Tree(_), Some(End::Gone)))
            && watched.goes_on_with(followed(calls))
        {
            continue;
        }
        if end.is_some() {
            return Ok(end);
        }
        watched.notice().into_iter().for_each(|notice| notice::say_of(target, notice));
    }
}

/// The processes whose calls are traced.
fn followed(calls: &Calls) -> Vec<u32> {
    let is_followed = |&pid: &u32| pidfd(pid).is_ok_and(|process| calls.follows(process.as_fd()));
    plumb_process::pids().into_iter().filter(is_followed).collect()
}

/// Shows the calls in the ring. Returns whether there were any.
fn look(calls: &mut Calls, shown: &mut Shown) -> Result<bool> {
    let mut result = Ok(());
    let taken = calls.take(|call| {
        if result.is_ok() {
            result = shown.show(call);
        }
    });
    result?;
    let counts = calls.counts();
    shown.flush(counts.dropped, counts.dropped + counts.untracked)?;
    Ok(taken > 0)
}

/// Drains the ring, then prints unfinished calls.
fn finish(calls: &mut Calls, shown: &mut Shown) -> Result<()> {
    calls.end()?;
    calls.ask_unfinished()?;
    look(calls, shown).map(drop)
}

/// Reports the number of calls and of those lost. `no_stack`: number of lost stacks.
fn say(calls: &Calls, no_stack: u64) {
    let CallCounts { seen, kept, dropped, untracked, no_memory } = calls.counts();
    let mut text = format!("{seen} calls");
    if kept > 0 {
        text += &format!(", {kept} of them filtered out by --min-time or --failed");
    }
    text += &match dropped {
        0 => ", none dropped".to_owned(),
        _ => format!(
            ", {dropped} DROPPED because the buffer was full: use --buffer 64, or select fewer calls with -e, --min-time, --failed"
        ),
    };
    if untracked > 0 {
        text += &format!("; {untracked} calls that change descriptors were dropped");
    }
    if no_stack > 0 {
        text +=
            &format!("; {no_stack} stacks were lost because the buffer was full: select fewer calls with -e");
    }
    if no_memory > 0 {
        text += &format!("; {no_memory} calls were lost because their entry could not be stored");
    }
    match calls.skipped() {
        0 => {}
        skipped => {
            text += &format!(
                "; up to {skipped} calls of all processes were missed, because the kernel had preempted the program that records them"
            );
        }
    }
    say!("{text}; {} ns of tracing overhead subtracted from each latency", calls.floor_ns());
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
