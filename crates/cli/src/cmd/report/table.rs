//! Tables in perf's look: a head behind `#`, a dotted line, columns two spaces apart.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use plumb_analyze::{cut_middle, shorten};

use crate::terminal::Output;

/// How a column's text is laid out, and made shorter where a line is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Right-aligned, never shortened.
    Number,
    /// Never shortened.
    Word,
    /// A file: the middle goes first.
    Path,
    /// A function: template arguments go first.
    Function,
}

/// A column.
pub struct Column {
    pub title: &'static str,
    pub layout: Layout,
}

/// A line: its cells, and the share in percent that gives the numbers their colour.
pub struct Line {
    pub cells: Vec<String>,
    pub percent: f64,
}

/// No column gets narrower than this to fit a terminal.
const NARROWEST: usize = 12;

/// Writes the table; on a terminal no line is wider than it, unless `full` asks for all of every name.
pub fn write(columns: &[Column], lines: &[Line], full: bool, out: &mut Output<'_>) -> io::Result<()> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.len()).collect();
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(&line.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let cuts = out.width.is_some() && !full;
    if let Some(limit) = out.width.filter(|_| cuts) {
        fit(columns, &mut widths, limit);
    } else if let Some(last) = widths.last_mut() {
        // The dotted line under the last column need not be as long as the longest name.
        *last = (*last).min(60);
    }
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    let dots: Vec<String> = widths.iter().map(|&width| ".".repeat(width)).collect();
    for head in [titles, dots] {
        let line = Line { cells: head, percent: 0.0 };
        let text = format!("# {}", layout(columns, &widths, &line, cuts, out).trim_start_matches("  "));
        writeln!(out, "{}", text.trim_end())?;
    }
    writeln!(out, "#")?;
    for line in lines {
        let text = layout(columns, &widths, line, cuts, out);
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn layout(columns: &[Column], widths: &[usize], line: &Line, cuts: bool, out: &Output<'_>) -> String {
    let mut text = String::new();
    for ((column, &width), cell) in columns.iter().zip(widths).zip(&line.cells) {
        text.push_str("  ");
        match column.layout {
            Layout::Number => text.push_str(&out.styled(heat(line.percent), &format!("{cell:>width$}"))),
            Layout::Path if cuts => text.push_str(&pad(&cut_middle(cell, width), width)),
            Layout::Function if cuts => text.push_str(&pad(&shorten(cell, width), width)),
            _ => text.push_str(&pad(cell, width)),
        }
    }
    text
}

fn pad(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// The colours that perf gives to shares.
pub fn heat(percent: f64) -> Style {
    match percent {
        p if p >= 5.0 => AnsiColor::Red.on_default().bold(),
        p if p >= 0.5 => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

/// Takes from the widest columns that may be shortened until the line fits. Functions are worth three times the
/// width of files.
fn fit(columns: &[Column], widths: &mut [usize], limit: usize) {
    let worth = |layout| match layout {
        Layout::Number | Layout::Word => None,
        Layout::Path => Some(3),
        Layout::Function => Some(1),
    };
    let mut excess = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(limit);
    while excess > 0 {
        let widest = (0..widths.len())
            .filter(|&i| widths[i] > NARROWEST)
            .filter_map(|i| Some((worth(columns[i].layout)? * widths[i], i)))
            .max();
        let Some((_, widest)) = widest else { return };
        widths[widest] -= 1;
        excess -= 1;
    }
}
