//! `plumb top`: where the time goes, as it goes: in the terminal, or as plain text (`--batch`).
//!
//! One thread samples, another looks and draws; names are found and recordings saved by others. Not here: sampling (capture-perf),
//! the tables and trees (analyze).

mod batch;
mod live;
mod sampling;
mod save;
mod screen;

#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use plumb_target::{End, Target};

use crate::args::value;
use crate::cmd::browse::state;
use crate::cmd::record::{self, Scope};
use crate::examples;
use crate::terminal::say;
use live::Live;

/// What `--help` says below the options.
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
    window: state::Window,

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
    scope: Scope,
}

/// Why the picture ended.
enum Left {
    /// The user wants no more, or has seen as many tables as were asked for.
    Quit,
    /// `--duration` is over: a command keeps running.
    TimeUp,
    /// There is no more.
    End(End),
}

/// Runs `plumb top`.
pub fn run(args: Args) -> Result<ExitCode> {
    if !args.batch && !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal; for tables as plain text: plumb top --batch");
    }
    plumb_capture_perf::return_freed_memory();
    let (mut live, notes) = match Live::start(&args.scope, args.batch) {
        Ok(started) => started,
        // A command that can't be started, say, has its own exit status.
        Err(error) => match error.downcast_ref::<plumb_capture_perf::Error>() {
            Some(error) => {
                say!("{error}");
                return Ok(ExitCode::from(error.exit_code()));
            }
            None => return Err(error),
        },
    };
    let left = if args.batch {
        notes.iter().for_each(|note| say!("{note}"));
        batch::run(&args, &mut live)
    } else {
        screen::run(&args, &mut live, notes)
    };
    let is_command = matches!(live.target(), Target::Command(_));
    if let Some(text) = live.exceeded() {
        say!("{text}");
    }
    let (running, descendants) = live.finish();
    if let Some(running) = running.filter(|_| !matches!(left, Ok(Left::TimeUp))) {
        // It may have ended just now.
        let _ = running.terminate();
    }
    record::notice::say_left(Some(descendants));
    Ok(ExitCode::from(match left? {
        Left::Quit | Left::TimeUp => 0,
        Left::End(end) => record::code_of(end, is_command),
    }))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = value::seconds(text)?;
    if interval < Duration::from_millis(100) {
        return Err("no less than 0.1 seconds".into());
    }
    Ok(interval)
}

fn window(text: &str) -> Result<state::Window, String> {
    if text == "all" {
        return Ok(state::Window::All);
    }
    match value::seconds(text)? {
        window if window.is_zero() => Err("more than 0 seconds".into()),
        window => Ok(state::Window::Last(window)),
    }
}
