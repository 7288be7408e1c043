//! The table as text. Only marked rows have colours.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use plumb_analyze::{Mark, Precision, shorten};

use super::Shown;
use super::shown::Rows;
use crate::render::change;
use crate::render::label;
use crate::render::padding::{self, left, right};
use crate::terminal::{Output, printable};

/// Titles of the columns before the last one, which names the row.
pub(super) const HEAD: [&str; 7] = ["Base", "New", "Base value", "New value", "Change", "Interval", "Note"];
/// Rank of each column. A narrow terminal drops columns with the highest rank first.
const RANKS: [u8; 8] = [1, 1, 2, 2, 0, 3, 0, 0];
/// A column is dropped rather than shorten names below this width.
const NAME: usize = 24;
/// Names are never shortened below this width to fit a terminal.
const NARROWEST: usize = 12;
/// Lines around the rows, including the next prompt.
const OTHERS: usize = 14;

/// Writes the table.
pub(super) fn write(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    for (title, side) in [("Base:", 0), ("New: ", 1)] {
        writeln!(out, "# {title} {}", printable(&recordings(shown, side)))?;
    }
    writeln!(out, "# Verdict: {}\n#", change::verdict(diff, &shown.event, &shown.unit))?;
    let mut lines = lines(shown);
    let height = out.height().filter(|_| shown.args.min.is_none());
    let fit = height.map_or(usize::MAX, |height| height.saturating_sub(OTHERS).max(10));
    let cut = lines.len().saturating_sub(fit);
    lines.truncate(fit);
    table(shown, &lines, out)?;
    rest(shown, cut, out)?;
    Ok(out.flush()?)
}

fn table(shown: &Shown<'_, '_>, lines: &[([String; 7], String, Mark)], out: &mut Output<'_>) -> Result<()> {
    let mut widths = HEAD.map(|title| title.len()).to_vec();
    for (cells, ..) in lines {
        widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = (*width).max(padding::width(cell)));
    }
    let limit = out.width.filter(|_| !shown.args.full_names);
    let longest = lines.iter().map(|(_, title, _)| padding::width(title)).max().unwrap_or(0);
    widths.push(longest.clamp(NARROWEST, NAME));
    let stay = padding::that_fit(&widths, &RANKS, limit.unwrap_or(usize::MAX));
    let used: usize = (0..7).filter(|&index| stay[index]).map(|index| widths[index] + 2).sum::<usize>() + 2;
    let room = limit.map(|limit| limit.saturating_sub(used).max(NARROWEST));
    let head = layout(&HEAD.map(str::to_owned), &widths, &stay);
    let title = row_title(shown);
    let title = room.map_or_else(|| title.into(), |room| shorten(title, room));
    writeln!(out, "#{}  {title}", head.strip_prefix(' ').unwrap_or(&head))?;
    for (cells, title, mark) in lines {
        let name = match room {
            Some(room) => shorten(title, room).into_owned(),
            None => title.clone(),
        };
        let text = format!("{}  {}", layout(cells, &widths, &stay), printable(&name));
        writeln!(out, "{}", out.styled(style(*mark), text.trim_end()))?;
    }
    padding::not_shown(&HEAD, &stay).map_or(Ok(()), |line| Ok(writeln!(out, "# {line}")?))
}

/// The recordings of a side, in one line.
fn recordings(shown: &Shown<'_, '_>, side: usize) -> String {
    let (ones, views) = (shown.sides[side], shown.views[side]);
    let samples = views.iter().map(|view| view.part().samples).sum();
    let mut text = format!("{}: {}", super::picture::names(shown)[side], label::samples(samples));
    if let ([one], [view]) = (ones, views)
        && one.filter.takes_a_part()
    {
        let share = Precision::of(view).percent(view.part().percent_of(view.recorded()));
        text += &format!(", {share} of all");
    }
    let lost: u64 = ones.iter().map(|one| one.profile.meta.lost_samples).sum();
    if lost > 0 {
        text += &format!(", {lost} lost");
    }
    let mut commands: Vec<String> = ones.iter().map(|one| one.profile.meta.command.join(" ")).collect();
    commands.dedup();
    if let [command] = &commands[..]
        && !command.is_empty()
    {
        text += &format!(", {command}");
    }
    text
}

fn row_title(shown: &Shown<'_, '_>) -> &'static str {
    match shown.args.by {
        Rows::Function => "Function",
        Rows::Path => "Stack, from the innermost function out",
        Rows::Line => "Line",
        Rows::Syscall => "Cause",
    }
}

/// Cells, titles and marks of the shown rows.
pub(super) fn lines(shown: &Shown<'_, '_>) -> Vec<([String; 7], String, Mark)> {
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
                change::interval(change, &shown.unit),
                change::note(row, diff),
            ];
            (cells, change::title(&row.subject, diff), change.mark(diff.options.alpha))
        })
        .collect()
}

fn layout(cells: &[String; 7], widths: &[usize], stay: &[bool]) -> String {
    let mut text = String::new();
    for (index, (cell, &width)) in cells.iter().zip(widths).enumerate().filter(|(index, _)| stay[*index]) {
        text.push_str("  ");
        match index {
            6 => text.push_str(&left(cell, width)),
            _ => text.push_str(&right(cell, width)),
        }
    }
    text
}

/// Red for an increase, green for a decrease.
fn style(mark: Mark) -> Style {
    match mark {
        Mark::More => AnsiColor::Red.on_default(),
        Mark::New => AnsiColor::Red.on_default().bold(),
        Mark::Less => AnsiColor::Green.on_default(),
        Mark::Vanished => AnsiColor::Green.on_default().bold(),
        Mark::Noise => Style::new(),
    }
}

/// The notes below the table. `cut`: the number of rows that did not fit.
fn rest(shown: &Shown<'_, '_>, cut: usize, out: &mut Output<'_>) -> Result<()> {
    let diff = shown.diff;
    if cut > 0 {
        let word = if cut == 1 { "row" } else { "rows" };
        writeln!(out, "# {cut} more {word}: --min {} shows all", shown.least() * 100.0)?;
    }
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
    remarks(shown, |text| Ok(writeln!(out, "# {text}")?))?;
    if let Some(text) = change::detectable(diff) {
        writeln!(out, "# Rows without a note are within noise; {text}")?;
    }
    Ok(())
}

/// The unit of the values, and the rule by which rows are marked.
pub(super) fn remarks(shown: &Shown<'_, '_>, mut write: impl FnMut(String) -> Result<()>) -> Result<()> {
    let diff = shown.diff;
    let per = plumb_documents::change::per(diff, &shown.event, &shown.unit);
    write(format!("{per}; {}", plumb_documents::change::rule(diff)))?;
    change::speed(diff).map_or(Ok(()), write)
}
