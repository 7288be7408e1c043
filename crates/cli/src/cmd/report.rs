//! `plumb report`: the distribution of time, as a table or a tree, as text, JSON or CSV.

mod flat;
mod header;
mod machine;
mod tree;
mod waits;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use plumb_analyze::{
    Cause, Cost, Filter, Key, Pattern, Precision, Report, ReportOptions, Tree, TreeOptions, View,
};
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::args::value;
use crate::examples;
use crate::exit::Exit;
use crate::pager;
use crate::render::{label, table};
use crate::terminal::{Output, finish};
use plumb_documents::kernel_time;
use plumb_documents::report::{EventReport, ReportBody, TreeKind};

/// Arguments of `plumb report`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::below(pager::HELP, examples::REPORT))]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Keys that distinguish rows: comm, pid, tid, exe, dso, sym, srcline
    #[arg(short, long, value_name = "KEY,...", value_delimiter = ',', default_value = "comm,dso,sym")]
    sort: Vec<Key>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Show the call tree from the roots (top-down)
    #[arg(long, alias = "tree", conflicts_with_all = ["bottom_up", "callers", "callees"])]
    top_down: bool,
    /// Show the call tree from the innermost functions (bottom-up)
    #[arg(long, conflicts_with_all = ["callers", "callees"])]
    bottom_up: bool,
    /// Show the callers of FUNCTION (TEXT or /REGEX/), all paths merged
    #[arg(long, value_name = "FUNCTION")]
    callers: Option<String>,
    /// Show the callees of FUNCTION (TEXT or /REGEX/), all paths merged
    #[arg(long, value_name = "FUNCTION")]
    callees: Option<String>,
    /// Sum up rows below this share, in percent [default: 0; 0.5 in trees and on a terminal]
    #[arg(long, alias = "percent-limit", value_name = "PERCENT", value_parser = value::percent)]
    min: Option<f64>,
    /// Base of percentages
    #[arg(long, value_name = "BASE", value_enum, default_value = "absolute")]
    percentage: Percentage,
    /// Show the first N rows [default: all; on a terminal without a pager, as many as fit]
    ///
    /// In a call tree, the first N rows of the outermost level.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Show sample counts
    #[arg(short = 'n', long)]
    show_nr_samples: bool,
    /// Show full names and paths, without shortening
    #[arg(long)]
    full_names: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// The shown times, with perf's option names.
#[derive(clap::Args, Debug)]
struct ColumnArgs {
    /// Show self time only, without called functions
    #[arg(long)]
    no_children: bool,
    /// Include the time of called functions
    #[arg(long, hide = true, overrides_with = "no_children")]
    children: bool,
    /// Accepted as perf's: the output is always text
    #[arg(long, hide = true)]
    stdio: bool,
}

/// The whole that percentages refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Percentage {
    /// All recorded samples
    Absolute,
    /// Samples that pass the filters
    Relative,
}

/// Causes below this share, in percent, are summed up.
const LEAST_WENT_INTO: f64 = 0.5;

/// Most causes of time that are named, without a pager.
const FEW: usize = 4;

/// Runs `plumb report`.
pub fn run(args: Args) -> Result<Exit> {
    let profile = crate::load::load(&args.file, &args.filters.symfs)?;
    let mut out = if args.json || args.csv { Output::stdout() } else { Output::paged() };
    finish(write(&profile, &args, &mut out))
}

pub(crate) fn write(profile: &Profile, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let mut shown = Vec::new();
    for filter in args.filters.filter_per_event(profile)? {
        let mut view = View::new(profile, &filter);
        if args.percentage == Percentage::Relative {
            view.refer_to_part();
        }
        let waits = plumb_documents::waits::set_idle_aside(&mut view, &filter);
        let body = body(&view, &filter, args, out.width.is_some())?;
        let idle = waits.as_ref().filter(|waits| waits.idle.part().samples > 0).map(|waits| {
            let options = ReportOptions { keys: args.sort.clone(), ..ReportOptions::default() };
            Report::new(&waits.idle, &filter, &options)
        });
        shown.push(EventReport { view, waits, idle, filter, body });
    }
    if args.json {
        machine::json(&shown, args, out)?;
    } else if args.csv {
        machine::csv(&shown, args, out)?;
    } else {
        for (index, shown) in shown.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            header::write(shown, out)?;
            waits::write(shown, out)?;
            match &shown.body {
                ReportBody::Rows(report) => flat::write(&shown.view, report, args, out)?,
                ReportBody::Trees(trees) => tree::write(&shown.view, trees, args, out)?,
            }
            went_into(shown, out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The distribution of time, in a few lines: the kernel's part is spread over many functions.
fn went_into(shown: &EventReport<'_>, out: &mut Output<'_>) -> Result<()> {
    let Some(time) = kernel_time::section(&shown.view, &shown.filter) else { return Ok(()) };
    writeln!(out, "#\n# Processor time went into (more: plumb kernel):")?;
    let used = time.rows.iter().filter(|row| row.cause != Cause::Idle);
    let (mut large, mut rest): (Vec<_>, Vec<_>) =
        used.partition(|row| row.cost.percent_of(time.whole) >= LEAST_WENT_INTO);
    if out.height().is_some() && large.len() > FEW {
        rest.extend(large.split_off(FEW));
    }
    let precision = Precision::of(&shown.view);
    let line =
        |cost: Cost, name: &str| format!("# {:>8}  {name}", precision.percent(cost.percent_of(time.whole)));
    for row in large {
        writeln!(out, "{}", line(row.cost, label::cause(row.cause, &row.name)))?;
    }
    if !rest.is_empty() {
        writeln!(out, "{}", line(rest.iter().map(|row| row.cost).sum(), "the rest"))?;
    }
    Ok(())
}

fn body(view: &View<'_>, filter: &Filter, args: &Args, on_terminal: bool) -> Result<ReportBody> {
    let machine = args.json || args.csv;
    let most_roots = args.limit.unwrap_or(usize::MAX);
    let tree = TreeOptions { min_percent: args.min.unwrap_or(0.5), most_roots };
    if args.top_down {
        return Ok(ReportBody::Trees(vec![(TreeKind::TopDown, Tree::top_down(view, tree))]));
    }
    if args.bottom_up {
        return Ok(ReportBody::Trees(vec![(TreeKind::BottomUp, Tree::bottom_up(view, tree))]));
    }
    let mut trees = Vec::new();
    if let Some(function) = &args.callers {
        let callers = Tree::callers(view, &function_pattern(view, function)?, tree);
        trees.push((TreeKind::Callers(function.clone()), callers));
    }
    if let Some(function) = &args.callees {
        let callees = Tree::callees(view, &function_pattern(view, function)?, tree);
        trees.push((TreeKind::Callees(function.clone()), callees));
    }
    if !trees.is_empty() {
        return Ok(ReportBody::Trees(trees));
    }
    let min_percent = args.min.unwrap_or(if on_terminal && !machine { 0.5 } else { 0.0 });
    let options = ReportOptions { keys: args.sort.clone(), children: !args.columns.no_children, min_percent };
    let mut report = Report::new(view, filter, &options);
    if let (Some(limit), true) = (args.limit, machine) {
        report.rows.truncate(limit);
    }
    Ok(ReportBody::Rows(report))
}

/// The pattern, if any function matches; otherwise an error that names similar ones.
fn function_pattern(view: &View<'_>, text: &str) -> Result<Pattern> {
    let pattern = Pattern::parse(text)?;
    if view.frames().any(|(_, frame)| pattern.matches_function(&frame.name)) {
        return Ok(pattern);
    }
    let part = text.trim_matches('/').to_lowercase();
    let mut similar: Vec<&str> = view
        .frames()
        .map(|(_, frame)| &*frame.name)
        .filter(|name| name.to_lowercase().contains(&part))
        .collect();
    similar.sort_unstable_by_key(|name| (name.len(), *name));
    similar.dedup();
    similar.truncate(5);
    if similar.is_empty() {
        bail!("no function in the profile is called `{text}`");
    }
    bail!("no function in the profile is called `{text}`; similar names:\n  {}", similar.join("\n  "))
}
