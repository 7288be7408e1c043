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

use crate::cmd::browse::state;
use crate::cmd::record::{self, Scope};
use crate::terminal::say;
use live::Live;

/// Arguments of `plumb top`.
#[derive(clap::Args)]
#[command(
    override_usage = "plumb top [OPTIONS]\n       plumb top [OPTIONS] -p PID[,PID]...\n       \
                      plumb top [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                      plumb top --batch [-n COUNT] [OPTIONS] ...",
    after_help = "Without a command or processes the whole machine is sampled; where that isn't allowed, this user's own processes.\n\
                  Shares are of all processor time sampled in the window, as in plumb report.\n\n\
                  Keys: e executables, p processes, s symbols, t stacks, c callers, f flame graph; / filter, Enter narrow\n\
                  down, Esc back, o order, E C open and close all, d window, Space pause, w write the recording, r reset, ? help, q quit.\n\n\
                  A command gets no terminal: it reads nothing, and what it prints is thrown away, but for its errors where they\n\
                  go somewhere else: plumb top 2>log -- CMD. Leaving top ends it (SIGTERM);\n\
                  with --batch Ctrl-C is the command's, and the third kills it.\n\n\
                  Memory is bounded: of what is long past the sums stay, but not every look, not the rarest calls, and of processes\n\
                  that have ended only their programs."
)]
pub struct Args {
    /// What to show first
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = state::Tab::Symbols)]
    view: state::Tab,

    /// Seconds between two pictures
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,

    /// Seconds that are looked back, or all
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = window)]
    window: state::Window,

    /// Print tables as plain text, one each interval, instead of drawing on the terminal
    #[arg(short, long)]
    batch: bool,

    /// With --batch: end after so many tables
    #[arg(short = 'n', long, value_name = "COUNT", requires = "batch", value_parser = clap::value_parser!(u64).range(1..))]
    number: Option<u64>,

    /// With --batch: so many rows of each table, 0 for all
    #[arg(long, value_name = "COUNT", requires = "batch", default_value_t = 20)]
    rows: usize,

    /// With --batch: order symbols by what was spent in them alone
    #[arg(long, requires = "batch")]
    by_self: bool,

    /// Where the key w writes the recording; one that is there is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "profile.plumb")]
    output: PathBuf,

    #[command(flatten)]
    scope: Scope,
}

/// Why the picture ended.
enum Left {
    /// The user wants no more, or has seen as many tables as were asked for.
    Quit,
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
    if let Some(running) = running {
        // It may have ended just now.
        let _ = running.terminate();
    }
    record::notice::say_left(Some(descendants));
    Ok(ExitCode::from(match left? {
        Left::Quit => 0,
        Left::End(end) => record::code_of(end, is_command),
    }))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = record::seconds(text)?;
    if interval < Duration::from_millis(100) {
        return Err("no less than 0.1 seconds".into());
    }
    Ok(interval)
}

fn window(text: &str) -> Result<state::Window, String> {
    if text == "all" {
        return Ok(state::Window::All);
    }
    match record::seconds(text)? {
        window if window.is_zero() => Err("more than 0 seconds".into()),
        window => Ok(state::Window::Last(window)),
    }
}
