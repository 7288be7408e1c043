//! The report for a terminal: 80 columns wide, or as wide as the terminal.

use std::io::{self, Write};

use anstyle::Style;

use crate::render::padding::{self, left};
use crate::render::table;
use crate::terminal::{Output, printable};
use plumb_documents::sections::{Block, ReportSection, SectionedReport};
use plumb_documents::text::Text;

/// Width if none is known.
const WIDTH: usize = 80;
/// Widest running text: longer lines are hard to read.
const WIDEST_TEXT: usize = 100;
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

pub fn write(document: &SectionedReport, out: &mut Output<'_>) -> io::Result<()> {
    // Tables are shortened to fit even without a terminal: JSON and Markdown have the full names.
    out.width = Some(out.width.unwrap_or(WIDTH));
    let title = format!("Hotspots of {}", printable(&document.title));
    wrapped(&title, BOLD, out)?;
    wrapped(&document.summary.plain(), Style::new(), out)?;
    document.sections.iter().enumerate().try_for_each(|(index, one)| section(index + 1, one, out))
}

fn section(number: usize, section: &ReportSection, out: &mut Output<'_>) -> io::Result<()> {
    writeln!(out)?;
    if !section.title.is_empty() {
        let title = out.styled(BOLD.underline(), &format!("{number}. {}", section.title));
        writeln!(out, "{title}")?;
    }
    section.blocks.iter().try_for_each(|one| block(one, out))
}

fn block(block: &Block, out: &mut Output<'_>) -> io::Result<()> {
    match block {
        Block::Text(words) => wrapped(&words.plain(), Style::new(), out),
        Block::Strong(words) => wrapped(&words.plain(), BOLD, out),
        Block::Note(words) => wrapped(words, DIM, out),
        Block::Heading(words) => {
            writeln!(out)?;
            wrapped(&words.plain(), BOLD, out)
        }
        Block::Facts(facts) => {
            let width = facts.iter().map(|(name, _)| padding::width(name)).max().unwrap_or(0);
            facts.iter().try_for_each(|(name, words)| fact(name, words, width, out))
        }
        Block::Commands(commands) => {
            commands.iter().try_for_each(|command| writeln!(out, "    {}", printable(command)))
        }
        Block::Table { columns, lines } => table::write(columns, lines, false, out),
    }
}

/// Writes a name with its value beside it.
fn fact(name: &str, words: &Text, width: usize, out: &mut Output<'_>) -> io::Result<()> {
    let hanging = " ".repeat(width + 4);
    let mut lines = wrap(&words.plain(), text_width(out).saturating_sub(hanging.len())).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "  {}  {first}", out.styled(DIM, &left(name, width)))?;
    lines.try_for_each(|line| writeln!(out, "{hanging}{line}"))
}

fn wrapped(words: &str, style: Style, out: &mut Output<'_>) -> io::Result<()> {
    wrap(words, text_width(out)).iter().try_for_each(|line| {
        let line = out.styled(style, line);
        writeln!(out, "{line}")
    })
}

fn text_width(out: &Output<'_>) -> usize {
    out.width.unwrap_or(WIDTH).min(WIDEST_TEXT)
}

/// Wraps the words to at most `width` characters; a longer word gets a line of its own.
pub fn wrap(words: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in printable(words).split_whitespace() {
        let length = padding::width(word);
        if used > 0 && used + 1 + length > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines.push(line);
    lines
}
