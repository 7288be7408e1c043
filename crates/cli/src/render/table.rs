//! Tables in perf's style: titles behind `#`, a dotted line, columns two spaces apart.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use plumb_analyze::{collapse_templates, cut_middle, shorten};

use crate::render::padding::{self as text, left};
use crate::terminal::{Heat, Output};

pub use plumb_documents::sections::{Cells, INLINED, Layout, TableColumn as Column};

/// Bars of increasing height, for histograms and sums over time.
pub const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Narrowest column when fitting a terminal; the kernel's name still fits.
const NARROWEST: usize = 18;

/// A longer function name, in columns, has its template arguments folded, on a terminal or not.
pub const LONG: usize = 80;

/// Writes the table. On a terminal no line is wider than it, and template arguments in long names are folded everywhere, unless `full`
/// asks for complete names. A last line names the columns that do not fit the terminal.
pub fn write(columns: &[Column], lines: &[Cells], full: bool, out: &mut Output<'_>) -> io::Result<()> {
    let mut folded = Vec::new();
    let lines = if full {
        lines
    } else {
        folded.extend(lines.iter().map(|line| columns.iter().zip(line).map(fold_templates).collect()));
        &folded[..]
    };
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.len()).collect();
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(text::width(cell));
        }
    }
    let cuts = out.width.is_some() && !full;
    if let Some(limit) = out.width.filter(|_| cuts) {
        let stay = that_fit(columns, &widths, limit);
        if stay.contains(&false) {
            let kept = |index: &usize| stay[*index];
            let fewer: Vec<Column> = (0..columns.len()).filter(kept).map(|index| columns[index]).collect();
            let of = |line: &Cells| (0..line.len()).filter(kept).map(|index| line[index].clone()).collect();
            write(&fewer, &lines.iter().map(of).collect::<Vec<Cells>>(), full, out)?;
            let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
            return text::not_shown(&titles, &stay).map_or(Ok(()), |line| writeln!(out, "# {line}"));
        }
    }
    if let Some(limit) = out.width.filter(|_| cuts) {
        fit(columns, lines, &mut widths, limit);
    } else if let Some(last) = widths.last_mut() {
        // One long name must not lengthen the dotted line under the last column.
        *last = (*last).min(60);
    }
    let titles: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    let dots: Vec<String> = widths.iter().map(|&width| ".".repeat(width)).collect();
    for head in [titles, dots] {
        let text = layout(columns, &widths, &head, cuts, out);
        // The `#` takes the place of the space before the first column.
        writeln!(out, "# {}", text.strip_prefix("  ").unwrap_or(&text).trim_end())?;
    }
    writeln!(out, "#")?;
    for line in lines {
        let text = layout(columns, &widths, line, cuts, out);
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

fn fold_templates((column, cell): (&Column, &String)) -> String {
    match column.layout {
        Layout::Function if text::width(cell) > LONG => collapse_templates(cell),
        _ => cell.clone(),
    }
}

fn layout(columns: &[Column], widths: &[usize], line: &Cells, cuts: bool, out: &Output<'_>) -> String {
    let mut text = String::new();
    for ((column, &width), cell) in columns.iter().zip(widths).zip(line) {
        text.push_str("  ");
        match column.layout {
            Layout::Number => text.push_str(&out.styled(cell_heat(cell), &text::right(cell, width))),
            Layout::Path if cuts => text.push_str(&left(&cut_middle(cell, width), width)),
            Layout::Function if cuts => text.push_str(&left(&shorten_function(cell, width), width)),
            _ => text.push_str(&left(cell, width)),
        }
    }
    text
}

/// Shortens a function's name, but not the text around it: `[.] name (inlined)`.
fn shorten_function(cell: &str, width: usize) -> String {
    let (name, after) = cell.strip_suffix(INLINED).map_or((cell, ""), |name| (name, INLINED));
    let (before, name) =
        if name.starts_with('[') { name.split_at_checked(4).unwrap_or(("", name)) } else { ("", name) };
    format!("{before}{}{after}", shorten(name, width.saturating_sub(before.len() + after.len())))
}

/// The colour of a cell that holds a share.
fn cell_heat(cell: &str) -> Style {
    cell.strip_suffix('%').and_then(|share| share.trim().parse().ok()).map_or(Style::new(), heat)
}

/// The colours that perf uses for shares.
pub fn heat(percent: f64) -> Style {
    match Heat::of(percent) {
        Heat::Hot => AnsiColor::Red.on_default().bold(),
        Heat::Warm => AnsiColor::Green.on_default(),
        Heat::Cold => Style::new(),
    }
}

/// The columns to keep where even shortened names do not fit: files are dropped first, then numbers except the first, from the right.
fn that_fit(columns: &[Column], widths: &[usize], limit: usize) -> Vec<bool> {
    let mut stay = vec![true; columns.len()];
    let least = |index: usize| match columns[index].layout {
        Layout::Number | Layout::Word => widths[index] + 2,
        Layout::Path | Layout::Function => widths[index].min(NARROWEST) + 2,
    };
    let of = |layout: Layout| move |&index: &usize| columns[index].layout == layout;
    let has_function = columns.iter().any(|column| column.layout == Layout::Function);
    let files = (0..columns.len()).rev().filter(of(Layout::Path)).filter(|_| has_function);
    let numbers = (1..columns.len()).rev().filter(of(Layout::Number));
    for index in files.chain(numbers) {
        if (0..columns.len()).filter(|&index| stay[index]).map(least).sum::<usize>() <= limit {
            break;
        }
        stay[index] = false;
    }
    stay
}

/// Narrows columns until a line fits: functions by folding template arguments, then the widest column.
/// Functions get three times the width of files.
fn fit(columns: &[Column], lines: &[Cells], widths: &mut [usize], limit: usize) {
    let mut excess = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(limit);
    for (index, _) in columns.iter().enumerate().filter(|(_, column)| column.layout == Layout::Function) {
        let collapsed = lines.iter().map(|line| text::width(&collapse_templates(&line[index])));
        let enough = collapsed.max().unwrap_or(0).max(columns[index].title.len());
        let spare = widths[index].saturating_sub(enough).min(excess);
        widths[index] -= spare;
        excess -= spare;
    }
    while excess > 0 {
        let worth = |index: usize| match columns[index].layout {
            Layout::Number | Layout::Word => None,
            Layout::Path => Some(3 * widths[index]),
            Layout::Function => Some(widths[index]),
        };
        let shrinkable = (0..widths.len()).filter(|&index| widths[index] > NARROWEST);
        let Some((_, widest)) = shrinkable.filter_map(|index| Some((worth(index)?, index))).max() else {
            return;
        };
        widths[widest] -= 1;
        excess -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(width: usize) -> String {
        let column = |title, layout| Column { title, layout };
        let columns = [
            column("Children", Layout::Number),
            column("    Self", Layout::Number),
            column("Shared Object", Layout::Path),
            column("Symbol", Layout::Function),
        ];
        let line = ["53.0%", "51.6%", "libstdc++.so.6.0.33", "[.] std::map<int, int>::operator[] (inlined)"];
        let mut bytes = Vec::new();
        let mut out = Output::lines(&mut bytes, width, false);
        write(&columns, &[line.map(str::to_owned).to_vec()], false, &mut out).expect("it is written");
        drop(out);
        String::from_utf8(bytes).expect("it is text")
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_columns_stay_whole_or_go() {
        for width in [80, 60, 40, 30] {
            let text = written(width);
            assert!(text.lines().all(|line| text::width(line) <= width), "{width}: {text}");
            assert!(text.contains("53.0%") && text.contains("(inlined)"), "{width}: {text}");
            let head = text.lines().next().expect("it has a head");
            assert_eq!(head.contains("Shared Object"), width >= 60, "{width}: {text}");
            assert_eq!(text.contains("51.6%"), width >= 40, "{width}: {text}");
        }
        assert!(!written(60).contains("not shown"));
        assert!(written(40).ends_with("\n# not shown at this width: Shared Object\n"));
        let folded = written(30).replace("\n#  ", "");
        assert!(folded.ends_with("\n# not shown at this width: Self, Shared Object\n"), "{folded}");
    }
}
