//! The table as Markdown, for a report on a change.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::Mark;

use super::Shown;
use crate::render::change;
use crate::render::markdown::{cell_code, code, escape};
use crate::render::precision::Precision;
use crate::terminal::Output;

/// Writes the table.
pub(super) fn write(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    for (title, side) in [("Base", 0), ("New", 1)] {
        let names: Vec<String> =
            shown.sides[side].iter().map(|one| code(&one.path.display().to_string())).collect();
        let samples: usize = shown.views[side].iter().map(|view| view.samples().len()).sum();
        writeln!(out, "- {title}: {}, {samples} samples", names.join(", "))?;
    }
    writeln!(out, "- All: {}", change::whole(diff, &shown.unit))?;
    writeln!(out, "\n| | Base % | New % | Change | Base | New | Interval | Notes |")?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---|")?;
    let precision = Precision::of_sides(shown.views);
    for row in shown.rows() {
        let change = &row.change;
        let title = change::title(&row.subject, diff);
        let is_marked = change.mark(diff.options.alpha) != Mark::Noise;
        let bold = |text: String| if is_marked { format!("**{text}**") } else { text };
        let cells = [
            cell_code(title.trim_start_matches("[.] ")),
            precision.percent(change.share[0] * 100.0),
            precision.percent(change.share[1] * 100.0),
            bold(precision.signed(change.share_difference() * 100.0)),
            change::value(change.value[0], &shown.unit),
            change::value(change.value[1], &shown.unit),
            format!(
                "{} .. {}",
                change::signed(change.low, &shown.unit),
                change::signed(change.high, &shown.unit)
            ),
            bold(escape(&change::note(row, diff))),
        ];
        writeln!(
            out,
            "| {} |",
            cells.map(|cell| if cell == "****" { String::new() } else { cell }).join(" | ")
        )?;
    }
    let (rows, shares) = shown.rest();
    if rows > 0 {
        let [base, new] = shares.map(|share| precision.percent(share * 100.0));
        writeln!(out, "| {rows} more | {base} | {new} | | | | | |")?;
    }
    writeln!(
        out,
        "\n{}: {}.",
        escape(&plumb_report::change::per(diff, &shown.event, &shown.unit)),
        plumb_report::change::rule(diff)
    )?;
    if let Some(text) = change::speed(diff) {
        writeln!(out, "Speed: {}.", escape(&text))?;
    }
    if let Some(text) = change::detectable(diff) {
        writeln!(out, "What has no note is within noise; {}.", escape(&text))?;
    }
    Ok(out.flush()?)
}
