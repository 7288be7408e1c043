//! The result as text, Markdown and JSON.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::CommandComparison;
use plumb_documents::compare::{CompareDocument, ComparedCommand, says};

use super::profile::Explained;
use super::side::Side;
use super::table::{HEAD, Row, row};
use super::{Args, profile};
use crate::render::markdown::{code, escape};
use crate::render::padding::{self, left, right};
use crate::terminal::{Output, printable};

/// Rank of each column. A narrow terminal drops columns with the highest rank first.
const RANKS: [u8; 7] = [0, 1, 1, 0, 2, 3, 0];

/// Writes the result as text.
pub(super) fn text(
    compared: &CommandComparison,
    explained: Option<&Explained<'_, '_>>,
    sides: &[Side; 2],
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    for side in sides {
        writeln!(out, "{}: {}", side.name, command(side))?;
    }
    for line in padding::fold(&how(compared, args), out.width.unwrap_or(usize::MAX), 2) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows: Vec<Row> = compared.figures.iter().map(|one| row(one, compared)).collect();
    let head = HEAD.map(str::to_owned);
    let mut widths = [0; HEAD.len()];
    for line in rows.iter().chain([&head]) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(padding::width(cell));
        }
    }
    let stay = padding::that_fit(&widths, &RANKS, out.width.unwrap_or(usize::MAX));
    for line in [&head].into_iter().chain(&rows) {
        let mut text = format!("  {}", left(&line[0], widths[0]));
        for ((cell, width), _) in line.iter().zip(widths).zip(&stay).skip(1).filter(|(_, stay)| **stay) {
            text.push_str("  ");
            text.push_str(&right(cell, width));
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    not_shown(&HEAD, &stay, out)?;
    if let Some(explained) = explained {
        profile::text(explained, args, out)?;
    }
    let verdict = format!("Verdict: {}", says(compared));
    writeln!(out)?;
    for line in padding::fold(&verdict, out.width.unwrap_or(usize::MAX), 2) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Names the columns that do not fit.
pub(super) fn not_shown(titles: &[&str], stay: &[bool], out: &mut Output<'_>) -> Result<()> {
    let line = padding::not_shown(titles, stay).map(|line| format!("  {line}"));
    let lines = line.map(|line| padding::fold(&line, out.width.unwrap_or(usize::MAX), 2));
    Ok(lines.iter().flatten().try_for_each(|line| writeln!(out, "{line}"))?)
}

/// Writes the result as Markdown.
pub(super) fn markdown(
    compared: &CommandComparison,
    explained: Option<&Explained<'_, '_>>,
    sides: &[Side; 2],
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    for side in sides {
        writeln!(out, "- {}: {}", side.name, code(&command(side)))?;
    }
    writeln!(out, "\n{}\n", how(compared, args))?;
    writeln!(out, "| {} |\n|---|---:|---:|---:|---:|---:|---|", HEAD.join(" | "))?;
    for one in &compared.figures {
        writeln!(out, "| {} |", row(one, compared).map(|cell| cell.trim().to_owned()).join(" | "))?;
    }
    if let Some(explained) = explained {
        profile::markdown(explained, args, out)?;
    }
    writeln!(out, "\n**Verdict**: {}", escape(&says(compared)))?;
    Ok(out.flush()?)
}

/// Writes the result as JSON.
pub(super) fn json(
    compared: &CommandComparison,
    explained: Option<&Explained<'_, '_>>,
    [a, b]: &[Side; 2],
    out: &mut Output<'_>,
) -> Result<()> {
    let sides = [a, b].map(|side| ComparedCommand::new(side.name, &side.text, &side.variables));
    let document = CompareDocument::new(compared, sides, explained.map(profile::changes));
    plumb_documents::json::write_pretty(&document, &mut *out)?;
    Ok(out.flush()?)
}

fn command(side: &Side) -> String {
    let words: Vec<&str> = side.variables.iter().map(String::as_str).chain([&side.text[..]]).collect();
    printable(&words.join(" ")).into_owned()
}

pub(super) fn how(compared: &CommandComparison, args: &Args) -> String {
    let counts_calls = compared.figures.iter().any(|one| one.name == "calls");
    let warmup = match (args.warmup, counts_calls) {
        (0, _) => "without a warm-up; system calls are counted in warm-ups only".to_owned(),
        (1, true) => "after a warm-up, in which system calls were counted".to_owned(),
        (1, false) => "after a warm-up".to_owned(),
        (times, true) => format!("after {times} warm-ups, in the last of which system calls were counted"),
        (times, false) => format!("after {times} warm-ups"),
    };
    format!(
        "{} runs of each, taking turns, {warmup}; A, B: medians; B / A: median of the ratios of all pairs of runs; \
         p is corrected for multiple comparisons, intervals are not",
        args.runs
    )
}
