//! The table for people. Colours are for what is marked, and for nothing else.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use plumb_analyze::{Mark, View, shorten};

use super::{Recording, Shown};
use crate::render::change;
use crate::render::columns::{self, left, right};
use crate::render::precision::Precision;
use crate::terminal::{Output, printable};

const HEAD: [&str; 7] = ["Base", "New", "Base value", "New value", "Change", "Interval", "Note"];
/// No name gets shorter to fit a terminal.
const NARROWEST: usize = 20;

/// Writes the table.
pub(super) fn write(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    for (title, side) in [("Base:", 0), ("New: ", 1)] {
        for (one, view) in shown.sides[side].iter().zip(shown.views[side]) {
            writeln!(out, "# {title} {}", printable(&recording(one, view)))?;
        }
    }
    writeln!(out, "# {}", plumb_report::change::per(diff, &shown.event, &shown.unit))?;
    writeln!(out, "# {}", plumb_report::change::rule(diff))?;
    if let Some(text) = change::speed(diff) {
        writeln!(out, "# Speed: {text}")?;
    }
    writeln!(out, "# All:  {}\n#", change::whole(diff, &shown.unit))?;
    let lines = lines(shown);
    let mut widths = HEAD.map(|title| title.len());
    for (cells, ..) in &lines {
        widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = (*width).max(columns::width(cell)));
    }
    let used: usize = widths.iter().map(|width| width + 2).sum::<usize>() + 2;
    let room =
        out.width.filter(|_| !shown.args.full_names).map(|width| width.saturating_sub(used).max(NARROWEST));
    let head = layout(&HEAD.map(str::to_owned), &widths);
    writeln!(out, "#{}  {}", head.strip_prefix(' ').unwrap_or(&head), row_title(shown))?;
    for (cells, title, mark) in &lines {
        let name = match room {
            Some(room) => shorten(title, room).into_owned(),
            None => title.clone(),
        };
        let text = format!("{}  {}", layout(cells, &widths), printable(&name));
        writeln!(out, "{}", out.styled(style(*mark), text.trim_end()))?;
    }
    rest(shown, out)?;
    Ok(out.flush()?)
}

fn recording(one: &Recording, view: &View<'_>) -> String {
    let part = view.part();
    let mut text = format!("{}: {} samples", one.path.display(), part.samples);
    if one.filter.takes_a_part() {
        text += &format!(", {:.1}% of all", part.percent_of(view.recorded()));
    }
    let meta = &one.profile.meta;
    if meta.lost_samples > 0 {
        text += &format!(", {} lost", meta.lost_samples);
    }
    if !meta.command.is_empty() {
        text += &format!(", {}", meta.command.join(" "));
    }
    text
}

fn row_title(shown: &Shown<'_, '_>) -> &'static str {
    match shown.args.by {
        super::Rows::Function => "Function",
        super::Rows::Path => "Stack, from the innermost function out",
        super::Rows::Line => "Line",
        super::Rows::Syscall => "What the time went into",
    }
}

/// The cells of the rows that are shown, their titles, and how they are marked.
fn lines(shown: &Shown<'_, '_>) -> Vec<([String; 7], String, Mark)> {
    let diff = shown.diff;
    let precision = Precision::of_sides(shown.views);
    shown
        .rows()
        .map(|row| {
            let change = &row.change;
            let cells = [
                precision.percent(change.share[0] * 100.0),
                precision.percent(change.share[1] * 100.0),
                change::value(change.value[0], &shown.unit),
                change::value(change.value[1], &shown.unit),
                change::relative(change),
                format!(
                    "{} .. {}",
                    change::signed(change.low, &shown.unit),
                    change::signed(change.high, &shown.unit)
                ),
                change::note(row, diff),
            ];
            (cells, change::title(&row.subject, diff), change.mark(diff.options.alpha))
        })
        .collect()
}

fn layout(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let mut text = String::new();
    for (index, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        text.push_str("  ");
        match index {
            6 => text.push_str(&left(cell, width)),
            _ => text.push_str(&right(cell, width)),
        }
    }
    text
}

/// Red for what costs more, green for what costs less.
fn style(mark: Mark) -> Style {
    match mark {
        Mark::More => AnsiColor::Red.on_default(),
        Mark::New => AnsiColor::Red.on_default().bold(),
        Mark::Less => AnsiColor::Green.on_default(),
        Mark::Vanished => AnsiColor::Green.on_default().bold(),
        Mark::Noise => Style::new(),
    }
}

fn rest(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let (rows, shares) = shown.rest();
    if rows > 0 {
        let [base, new] = shares.map(|share| Precision::of_sides(shown.views).percent(share * 100.0));
        let word = if rows == 1 { "row" } else { "rows" };
        writeln!(
            out,
            "# {rows} {word} below {}%, none marked: {base} of the base, {new} of the new",
            shown.least() * 100.0
        )?;
    }
    if let Some(text) = change::detectable(shown.diff) {
        writeln!(out, "# What has no note is within noise; {text}")?;
    }
    Ok(())
}
