//! `plumb stat`: measures the cost of a command, once or several times.
//!
//! Sums are exact, as the kernel accounts them. The split of CPU time into user code and kernel is sampled: the kernel's own split
//! is by timer tick, and wrong for shorter periods. Elsewhere: running and counting (capture-perf, capture-bpf).

mod text;

use std::ffi::OsString;
use std::io::{BufWriter, IsTerminal, Write, stderr};
use std::path::PathBuf;

use anyhow::{Context, Result};
use plumb_call_watch::call_ns;
use plumb_capture_api::StatCounters;
use plumb_capture_bpf::Stat;
use plumb_stat_runner::{RunSet, StatDocument, StatRunner};
use plumb_target::Prints;

use crate::examples;
use crate::exit::Exit;
use crate::newfile::{Access, Destination, NewFile};
use crate::recording::{self, notice};
use crate::terminal::{Output, finish, status};

/// Arguments of `plumb stat`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb stat [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...",
    after_help = examples::below(recording::CTRL_C, examples::STAT)
)]
pub struct Args {
    /// Number of measured runs of each command
    ///
    /// With several, medians are shown with confidence intervals.
    #[arg(short = 'n', short_alias = 'r', long, alias = "repeat", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Number of warm-up runs of each command, not measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup: u32,
    /// Do not count system calls (counting costs about 0.1 us per call)
    #[arg(long)]
    no_calls: bool,
    /// Discard the command's output
    #[arg(long)]
    silent: bool,
    /// Number of thread names shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    threads: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the result to FILE instead of standard error; - for standard output
    ///
    /// With -, the command's standard output goes to standard error.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Command to measure, after any VAR=VALUE for its environment
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs `plumb stat`.
pub fn run(args: Args) -> Result<Exit> {
    let launch = crate::args::launch(&args.command)?;
    let destination =
        args.output.as_deref().map(|path| Destination::check(path, Access::Usual)).transpose()?;
    let prints = match &destination {
        _ if args.silent => Prints::Nowhere,
        // Standard output is reserved for the result.
        Some(Destination::Stdout) => Prints::AsErrors,
        _ => Prints::Through,
    };
    let (watcher, missing, per_call_ns) = watcher(!args.no_calls);
    let mut tally = StatRunner::new(watcher, notice::say)?;
    let mut gathered = RunSet { missing, per_call_ns, ..RunSet::default() };
    for number in 0..args.warmup.saturating_add(args.runs) {
        let is_measured = number >= args.warmup;
        progress(&match (is_measured, args.runs) {
            (false, _) => format!("warm-up {} of {}", number + 1, args.warmup),
            (true, 1) => String::new(),
            (true, runs) => format!("run {} of {runs}", number - args.warmup + 1),
        });
        let tallied = tally.run(&launch, &prints).inspect_err(|_| progress(""))?;
        // A shell exits with 128 plus the number of the signal that ended its command.
        let code = Exit::of_status(tallied.status).code();
        let stops = tallied.interrupted || code > 128;
        if is_measured {
            gathered.runs.push(tallied);
        }
        if stops {
            break;
        }
    }
    progress("");
    drop(tally);
    let exit = worst(&gathered);
    let shown = match (&args.output, &destination) {
        (Some(path), Some(destination)) => {
            save(&gathered, &args, destination).with_context(|| format!("cannot write {}", path.display()))
        }
        _ => write(&gathered, &args, &mut Output::stderr()),
    };
    finish(shown)?;
    // JSON on standard error is meant for a program.
    if !args.json || args.output.is_some() {
        notice::say_left(gathered.runs.last().map(|run| run.left.clone()));
    }
    Ok(exit)
}

/// The kernel counters, or the reason why they are not available; with system calls, also the cost of counting one, in nanoseconds.
fn watcher(calls: bool) -> (Option<Box<dyn StatCounters>>, Option<String>, Option<f64>) {
    let before = call_ns();
    match Stat::load(calls) {
        Ok(stat) => {
            let per_call = calls.then(|| (call_ns() - before).max(0.0));
            (Some(Box::new(stat)), None, per_call)
        }
        Err(error) => (None, Some(error.to_string()), None),
    }
}

/// Writes the result to a file, completely or not at all.
fn save(gathered: &RunSet, args: &Args, destination: &Destination) -> Result<()> {
    let mut file = NewFile::to(destination)?;
    write(gathered, args, &mut Output::plain(BufWriter::new(&mut file)))?;
    Ok(file.commit()?)
}

fn write(gathered: &RunSet, args: &Args, out: &mut Output<'_>) -> Result<()> {
    if args.json {
        let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let statuses = gathered.runs.iter().map(|run| Exit::of_status(run.status).code()).collect();
        let answer = StatDocument::new(gathered, command, statuses);
        plumb_documents::json::write_pretty(&answer, &mut *out)?;
    } else {
        text::write(gathered, args, out)?;
    }
    Ok(out.flush()?)
}

/// Exit status: that of the first failed run, or success.
fn worst(gathered: &RunSet) -> Exit {
    let exits = gathered.runs.iter().map(|run| Exit::of_status(run.status));
    exits.fold(Exit::Success, Exit::or)
}

/// Shows a progress line that the next one overwrites, if standard error is a terminal.
fn progress(text: &str) {
    if stderr().is_terminal() {
        status(text);
    }
}
