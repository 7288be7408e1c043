//! The table as Markdown, for a report on a change.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Mark, Precision};

use super::{Shown, text};
use crate::render::change;
use crate::render::markdown::{cell_code, code, escape};
use crate::terminal::Output;

/// First of the columns that are bold in marked rows.
const CHANGE: usize = 4;
const NOTE: usize = 6;

/// Writes the table: the same rows, cells and marks as the text.
pub(super) fn write(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    for (title, side) in [("Base", 0), ("New", 1)] {
        let names: Vec<String> =
            shown.sides[side].iter().map(|one| code(&one.path.display().to_string())).collect();
        let samples: usize = shown.views[side].iter().map(|view| view.samples().len()).sum();
        writeln!(out, "- {title}: {}, {samples} samples", names.join(", "))?;
    }
    writeln!(out, "- Verdict: {}", escape(&change::verdict(diff, &shown.event, &shown.unit)))?;
    writeln!(out, "\n| | {} |\n|---|---:|---:|---:|---:|---:|---:|---|", text::HEAD.join(" | "))?;
    for (cells, title, mark) in text::lines(shown) {
        let bold = |at: usize, cell: String| match mark {
            Mark::Noise => cell,
            // Bold where the text table uses colour.
            _ if at == CHANGE || at == NOTE => format!("**{cell}**"),
            _ => cell,
        };
        let mut at = 0..;
        let cells = cells.map(|cell| bold(at.next().unwrap_or(0), escape(&cell)));
        writeln!(out, "| {} | {} |", cell_code(title.trim_start_matches("[.] ")), cells.join(" | "))?;
    }
    let (rows, shares) = shown.rest();
    if rows > 0 {
        let precision = Precision::of_sides(shown.views);
        let [base, new] = shares.map(|share| precision.percent(share * 100.0));
        writeln!(out, "| {rows} more | {base} | {new} | | | | | |")?;
    }
    writeln!(out)?;
    text::remarks(shown, |text| Ok(writeln!(out, "{}.", escape(&text))?))?;
    Ok(out.flush()?)
}
