//! `plumb top`: the profile of the last seconds, live on the terminal or as plain text (`--batch`).
//!
//! One thread samples, another draws; separate threads look up names and save recordings. Elsewhere: sampling (capture-perf),
//! the tables and trees (analyze).

mod batch;
mod facts;
mod sampling;
mod save;
mod screen;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use plumb_record::{LiveSession, RecordRequest};
use plumb_target::{End, Running, Target};

use crate::args::{CommandArgs, EventArgs, RecordArgs, TargetArgs, value};
use crate::browse::state;
use crate::examples;
use crate::exit::Exit;
use crate::recording::{self, notice};
use crate::terminal::say;

/// Text of `--help` below the options.
const NOTE: &str = "\
Without a command or a process, plumb top samples the whole machine, or this user's own processes if the whole
machine is not allowed. Percentages are of all CPU time sampled in the window, as in plumb report.

Keys: e executables, p processes, s symbols, t stacks, c callers, f flame graph; / filter, Enter narrow down,
Esc back, o order, E C open and close all, d window, Space pause, w write the recording, r reset, ? help, q quit.

A command has no terminal: its input is empty and its output is discarded, except errors that are redirected
(plumb top 2>log -- CMD). Leaving top ends the command (SIGTERM). With --batch, Ctrl-C goes to the command, and
the third Ctrl-C kills it.

Memory is bounded: old samples are kept as sums, without their intervals and the rarest call paths; processes that
have ended are kept as executables only.";

/// Arguments of `plumb top`.
#[derive(clap::Args)]
#[command(
    mut_arg("attach", |arg| arg.alias("pid")),
    override_usage = "plumb top [OPTIONS]\n       plumb top [OPTIONS] -p PID[,PID]...\n       \
                      plumb top [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb top --batch [-n N] [OPTIONS] ...",
    after_help = examples::below(NOTE, examples::TOP)
)]
pub struct Args {
    /// Initial view
    #[arg(long, value_enum, value_name = "VIEW", default_value_t = state::Tab::Symbols)]
    view: state::Tab,

    /// Refresh interval, in seconds
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Time window shown, in seconds, or all
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = window)]
    window: state::TimeRange,

    /// Print plain-text tables, one per interval, instead of drawing on the terminal
    #[arg(short, long)]
    batch: bool,

    /// With --batch: exit after N tables
    #[arg(short = 'n', long, value_name = "N", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,

    /// With --batch: rows per table, 0 for all
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 20)]
    rows: usize,

    /// With --batch: sort functions by self time
    #[arg(long, requires = "batch")]
    by_self: bool,

    /// Output file of key w; an existing file is renamed to FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "profile.plumb")]
    output: PathBuf,

    #[command(flatten)]
    command: CommandArgs,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    recording: RecordArgs,

    #[command(flatten)]
    events: EventArgs,
}

/// Reason why the display ended.
enum Left {
    /// The user pressed quit, or the requested number of tables was printed.
    Quit,
    /// `--duration` is over.
    TimeUp,
    /// The observation ended.
    End(End),
}

/// Runs `plumb top`.
pub fn run(args: Args) -> Result<Exit> {
    if !args.batch && !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal; for tables as plain text: plumb top --batch");
    }
    let (request, mut live, notes) = start(&args)?;
    let left = if args.batch {
        notes.iter().for_each(|note| say!("{note}"));
        batch::run(&args, &mut live)
    } else {
        screen::run(&args, &request, &mut live, notes)
    };
    if let Some(text) = live.exceeded() {
        say!("{text}");
    }
    let (running, descendants) = live.stop();
    running.iter().for_each(Running::terminate);
    notice::say_left(Some(descendants));
    Ok(match left? {
        Left::Quit | Left::TimeUp => Exit::Success,
        Left::End(end) => Exit::of_end(end, matches!(request.target, Target::Command(_))),
    })
}

/// Starts sampling the target or, without one, everything that the user may sample. Also returns messages to print.
fn start(args: &Args) -> Result<(RecordRequest, LiveSession, Vec<String>)> {
    let is_named = args.target.names_target() || !args.command.words.is_empty();
    let request = if is_named {
        recording::request(&args.target, &args.recording, &args.command.words)?
    } else {
        let machine = TargetArgs { all: true, ..args.target.clone() };
        recording::request(&machine, &args.recording, &[])?
    };
    let request = recording::with_events(request, &args.events)?;
    ensure!(request.sampling.also.is_empty(), "plumb top shows one event: give one -e");
    match LiveSession::start(request.clone()) {
        Ok((live, notes)) => Ok((request, live, notes)),
        Err(_) if !is_named => {
            let request = RecordRequest { target: Target::Processes(own_processes()), ..request };
            let (live, mut notes) = LiveSession::start(request.clone())?;
            let note =
                "your own processes only: the whole machine takes root, or kernel.perf_event_paranoid=0";
            notes.push(note.into());
            Ok((request, live, notes))
        }
        Err(error) => Err(error.into()),
    }
}

/// This user's processes except this one.
fn own_processes() -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let user = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid());
    let own = std::process::id();
    let mine = user(own);
    plumb_process::pids().into_iter().filter(|&pid| pid != own && user(pid) == mine).collect()
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = value::seconds(text)?;
    if interval < Duration::from_millis(100) {
        return Err("no less than 0.1 seconds".into());
    }
    Ok(interval)
}

fn window(text: &str) -> Result<state::TimeRange, String> {
    if text == "all" {
        return Ok(state::TimeRange::All);
    }
    match value::seconds(text)? {
        window if window.is_zero() => Err("more than 0 seconds".into()),
        window => Ok(state::TimeRange::Last(window)),
    }
}
