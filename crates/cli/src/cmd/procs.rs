//! `plumb procs`: how often and how long programs ran, the cost of their processes by part, the processes that started
//! them, and from which stack.
//!
//! Elsewhere: the counting (analyze), the recording (`plumb record`, which this runs for a command).

mod text;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use plumb_analyze::{Procs, Program, View};
use plumb_documents::column::write_csv;
use plumb_documents::json;
use plumb_documents::procs::{ProcessesDocument, ProgramRow, columns};
use plumb_profile::Profile;

use crate::advice::processes::ProcessAdvice;
use crate::args::{FilterArgs, RecordArgs, TargetArgs, value};
use crate::examples;
use crate::exit::Exit;
use crate::recording::{self, prints_beside, record_profile};
use crate::terminal::{Output, finish, say};

/// Arguments of `plumb procs`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb procs [OPTIONS] [FILE]\n       plumb procs [OPTIONS] -- [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            plumb procs [OPTIONS] -a --duration TIME",
    mut_arg("attach", |arg| arg.alias("record-pid").short_alias('P')),
    after_help = examples::PROCS
)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb", conflicts_with = "target")]
    file: PathBuf,
    /// Sum up programs below this share of CPU time, in percent [default: 0; 0.5 on a terminal]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    min: Option<f64>,
    /// Number of starting stacks shown per program
    #[arg(long, value_name = "N", default_value_t = 3)]
    stacks: usize,
    /// Show full names and paths, without shortening
    #[arg(long)]
    full_names: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
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

/// Runs `plumb procs`.
pub fn run(args: Args) -> Result<Exit> {
    if !args.target.names_target() && args.command.is_empty() {
        let profile = crate::load::load(&args.file, &args.filters.symfs)?;
        return finish(write(&profile, &args, &mut Output::stdout()));
    }
    let request = recording::request(&args.target, &args.recording, &args.command)?
        .printing(prints_beside(args.json || args.csv));
    let (profile, exit) = record_profile(&request, None, None)?;
    finish(write(&profile, &args, &mut Output::stdout()))?;
    Ok(exit)
}

/// The report with the options for its output.
struct Shown<'p> {
    view: View<'p>,
    procs: Procs<'p>,
    document: ProcessesDocument<'p>,
    /// Indices of the programs that have a row. A parent of one of them is among them.
    lines: Vec<usize>,
    advice: ProcessAdvice,
    /// Programs below this share of the whole, in percent, are summed up.
    min: f64,
}

impl<'p> Shown<'p> {
    fn new(profile: &'p Profile, filter: &plumb_analyze::Filter, min: f64) -> Self {
        let view = View::new(profile, filter);
        let procs = Procs::new(&view, filter);
        let is_shown = |program: &Program<'_>| min == 0.0 || program.total.percent_of(procs.whole) >= min;
        let lines: Vec<usize> =
            (0..procs.programs.len()).filter(|&index| is_shown(&procs.programs[index])).collect();
        let document = ProcessesDocument::new(&view, &procs, &lines);
        Shown { advice: ProcessAdvice::new(&procs), document, lines, view, procs, min }
    }

    /// The programs that have a row, with it.
    fn rows(&self) -> impl Iterator<Item = (&Program<'p>, &ProgramRow<'p>)> {
        self.lines.iter().map(|&index| &self.procs.programs[index]).zip(&self.document.programs)
    }
}

pub(crate) fn write(profile: &Profile, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let filters = args.filters.filter_per_event(profile)?;
    let Some((filter, others)) = filters.split_first() else { return Ok(()) };
    if !others.is_empty() {
        say!("{} events more in the profile: choose with --event", others.len());
    }
    // The idle task belongs to no process.
    let filter = plumb_analyze::Filter { no_idle: true, ..filter.clone() };
    let is_text = !args.json && !args.csv;
    let min = args.min.unwrap_or(if is_text && out.width.is_some() { 0.5 } else { 0.0 });
    let mut shown = Shown::new(profile, &filter, min);
    match (args.json, args.csv) {
        (true, _) => {
            let place = |index| shown.lines.binary_search(&index).ok();
            shown.document.advice = Some(shown.advice.json(&shown.procs, place));
            json::write(&shown.document, &mut *out)?;
        }
        (_, true) if shown.document.programs.is_empty() => {}
        (_, true) => write_csv(&columns(), &shown.document.programs, &mut *out)?,
        _ => text::write(&shown, args, out)?,
    }
    out.flush()?;
    Ok(())
}
