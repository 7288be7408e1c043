//! The table of functions (or of whatever `--sort` asks for).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use plumb_analyze::{Cost, Key, Kind, Precision, Report, Rest, Row, View, rounded_shares};

use super::Args;
use super::table::{self, Cells, Column, Layout};
use crate::terminal::{Output, printable};

/// Default of `--sort`.
const DEFAULT_SORT: [Key; 3] = [Key::Comm, Key::Dso, Key::Symbol];

/// Writes the table.
pub fn write(view: &View<'_>, report: &Report, args: &Args, out: &mut Output<'_>) -> io::Result<()> {
    let shares = Shares::new(report, view);
    let precision = shares.precision;
    let names = FileNames::new(view, report, args);
    let sort = &without_constant(report, args, &names, out)?[..];
    let shown = shown_rows(report, args, out);
    let lines: Vec<Cells> = report.rows[..shown]
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let (total, own) = shares.of(index, row);
            let mut cells = Vec::new();
            if !args.columns.no_children {
                cells.push(precision.steps(total, row.total.weight > 0));
            }
            cells.push(precision.steps(own, row.own.weight > 0));
            if args.show_nr_samples {
                cells.push(row.own.samples.to_string());
            }
            cells.extend(sort.iter().map(|&key| printable(&names.text(row, key)).into_owned()));
            cells
        })
        .collect();
    table::write(&columns(args, sort), &lines, args.full_names, out)?;
    let more = &report.rows[shown..];
    if !more.is_empty() {
        let steps = (shown..report.rows.len()).map(|index| shares.own[index]).sum();
        let share = precision.steps(steps, more.iter().any(|row| row.own.weight > 0));
        let rows = if more.len() == 1 { "row" } else { "rows" };
        writeln!(out, "# {} more {rows}, {} in themselves: --limit N shows more", more.len(), share)?;
    }
    let share = |steps, rest: Rest| precision.steps(steps, rest.own.weight > 0);
    let (below, unnamed) = (share(shares.below, report.below), share(shares.unnamed, report.unnamed));
    write_rest(out, report.below, &below, &format!("below {} %", shown_minimum(args)))?;
    write_rest(out, report.unnamed, &unnamed, "not named by --dso or --symbol")
}

/// Returns the sort keys, without the command column if all rows have the same command; that goes into the header. Keeps the keys of an explicit
/// `--sort`.
fn without_constant(
    report: &Report,
    args: &Args,
    names: &FileNames<'_, '_>,
    out: &mut Output<'_>,
) -> io::Result<Vec<Key>> {
    let mut sort = args.sort.clone();
    if sort == DEFAULT_SORT
        && let [first, rest @ ..] = &report.rows[..]
        && !rest.is_empty()
    {
        let comm = names.text(first, Key::Comm);
        if rest.iter().all(|row| names.text(row, Key::Comm) == comm) {
            writeln!(out, "# All of:   {}\n#", printable(&comm))?;
            sort.retain(|&key| key != Key::Comm);
        }
    }
    Ok(sort)
}

/// Number of rows to show: the requested number; otherwise all, or as many as fit on a terminal without a pager.
fn shown_rows(report: &Report, args: &Args, out: &Output<'_>) -> usize {
    /// Lines of the header, the sums below, and the next prompt.
    const OTHERS: usize = 19;
    let fit = || out.height().map(|height| height.saturating_sub(OTHERS).max(10));
    args.limit.or_else(fit).unwrap_or(usize::MAX).min(report.rows.len())
}

/// Minimum share of a row, in percent: `--min`, or the default on a terminal.
fn shown_minimum(args: &Args) -> f64 {
    args.min.unwrap_or(0.5)
}

fn write_rest(out: &mut Output<'_>, rest: Rest, share: &str, why: &str) -> io::Result<()> {
    if rest.rows == 0 {
        return Ok(());
    }
    let rows = if rest.rows == 1 { "row" } else { "rows" };
    writeln!(out, "# {} {rows} {why}: {share} in themselves", rest.rows)
}

fn columns(args: &Args, sort: &[Key]) -> Vec<Column> {
    let number = |title| Column { title, layout: Layout::Number };
    let mut columns = Vec::new();
    if args.columns.no_children {
        columns.push(number("Overhead"));
    } else {
        columns.extend([number("Children"), number("    Self")]);
    }
    if args.show_nr_samples {
        columns.push(number("Samples"));
    }
    columns.extend(sort.iter().map(|&key| {
        let (title, layout) = match key {
            Key::Comm => ("Command", Layout::Word),
            Key::Pid => ("Pid", Layout::Number),
            Key::Tid => ("Tid", Layout::Number),
            Key::Exe => ("Executable", Layout::Path),
            Key::Dso => ("Shared Object", Layout::Path),
            Key::Symbol => ("Symbol", Layout::Function),
            Key::SrcLine => ("Source:Line", Layout::Path),
        };
        Column { title, layout }
    }));
    columns
}

/// Shares rounded to the last digit shown. Self shares add up over all rows, shown or not.
struct Shares {
    own: Vec<u32>,
    below: u32,
    unnamed: u32,
    whole: Cost,
    precision: Precision,
}

impl Shares {
    fn new(report: &Report, view: &View<'_>) -> Self {
        let (whole, precision) = (view.whole(), Precision::of(view));
        let mut parts: Vec<u64> = report.rows.iter().map(|row| row.own.weight).collect();
        parts.extend([report.below.own.weight, report.unnamed.own.weight]);
        let mut own = rounded_shares(&parts, whole.weight, precision.per_percent());
        let unnamed = own.pop().unwrap_or_default();
        let below = own.pop().unwrap_or_default();
        Self { own, below, unnamed, whole, precision }
    }

    /// The row's total and own share.
    fn of(&self, index: usize, row: &Row) -> (u32, u32) {
        let own = self.own[index];
        let total =
            (row.total.percent_of(self.whole) * f64::from(self.precision.per_percent())).round() as u32;
        (total.max(own), own)
    }
}

/// File names without directories, as perf shows them, except where two files would get the same name.
struct FileNames<'v, 'p> {
    view: &'v View<'p>,
    full: bool,
    has_symbols: bool,
    ambiguous: BTreeSet<String>,
}

impl<'v, 'p> FileNames<'v, 'p> {
    fn new(view: &'v View<'p>, report: &Report, args: &Args) -> Self {
        let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in &report.rows {
            for &key in &args.sort {
                let text = row.key.text(view, key);
                if let Some(short) = file_name(view, row, key, &text) {
                    paths.entry(short.to_owned()).or_default().insert(text.to_string());
                }
            }
        }
        let ambiguous =
            paths.into_iter().filter(|(_, paths)| paths.len() > 1).map(|(name, _)| name).collect();
        Self { view, full: args.full_names, has_symbols: args.sort.contains(&Key::Symbol), ambiguous }
    }

    fn text(&self, row: &Row, key: Key) -> String {
        let text = row.key.text(self.view, key);
        let frame = self.view.frame(row.key.frame);
        match key {
            // The marker's text is in the symbol column already.
            Key::Dso if self.has_symbols && frame.dso_path.is_empty() && frame.kind == Kind::Marker => {
                "-".into()
            }
            Key::Symbol => symbol(self.view, row, &text),
            _ => match file_name(self.view, row, key, &text) {
                Some(short) if !self.full && !self.ambiguous.contains(short) => short.to_owned(),
                _ => text.into_owned(),
            },
        }
    }
}

/// The last component of the text if that is a path. Where the source line is unknown, the text is a function's name.
fn file_name<'t>(view: &View<'_>, row: &Row, key: Key, text: &'t str) -> Option<&'t str> {
    let is_path = match key {
        Key::Dso | Key::Exe => text.starts_with('/'),
        Key::SrcLine => view.frame(row.key.frame).line > 0,
        _ => false,
    };
    text.rsplit('/').next().filter(|_| is_path)
}

fn symbol(view: &View<'_>, row: &Row, name: &str) -> String {
    let mode = match view.frame(row.key.frame).kind {
        Kind::Kernel => "[k] ",
        Kind::User => "[.] ",
        Kind::Marker => "[-] ",
    };
    let inlined = if row.inlined { table::INLINED } else { "" };
    format!("{mode}{name}{inlined}")
}
