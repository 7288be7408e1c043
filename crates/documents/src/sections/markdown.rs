//! The report in Markdown, as GitHub reads it.
//!
//! Names are code spans, in which only a backtick is special; other text is plumb's own and needs no escaping.

use std::io::{self, Write};

use plumb_formats::escape::printable;

use super::{Block, Cells, Layout, SectionedReport, TableColumn as Column};
use crate::markdown::{cell_code, code, escape};
use crate::text::{Span, Text};

/// Writes the report.
///
/// # Errors
/// `out` fails.
pub fn write(document: &SectionedReport, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# {}", text(&Text::default().and("Hotspots of ").name(&document.title)))?;
    writeln!(out, "\n{}", text(&document.summary))?;
    for (number, section) in document.sections.iter().enumerate() {
        writeln!(out, "\n## {}. {}", number + 1, section.title)?;
        section.blocks.iter().try_for_each(|one| block(one, out))?;
    }
    Ok(())
}

fn block(block: &Block, out: &mut impl Write) -> io::Result<()> {
    match block {
        Block::Text(words) => writeln!(out, "\n{}", text(words)),
        Block::Strong(words) => writeln!(out, "\n**{}**", text(words)),
        Block::Note(words) => writeln!(out, "\n<sub>{}</sub>", escape(words)),
        Block::Heading(words) => writeln!(out, "\n### {}", text(words)),
        Block::Facts(facts) => {
            writeln!(out)?;
            facts.iter().try_for_each(|(name, words)| writeln!(out, "- {}: {}", escape(name), text(words)))
        }
        Block::Commands(commands) => {
            writeln!(out, "\n```sh\n{}\n```", printable_lines(commands))
        }
        Block::Table { columns, lines } => table(columns, lines, out),
    }
}

fn table(columns: &[Column], lines: &[Cells], out: &mut impl Write) -> io::Result<()> {
    let titles: Vec<&str> = columns.iter().map(|column| column.title.trim()).collect();
    let sides: Vec<&str> =
        columns.iter().map(|column| if column.layout == Layout::Number { "---:" } else { "---" }).collect();
    writeln!(out, "\n| {} |\n| {} |", titles.join(" | "), sides.join(" | "))?;
    for line in lines {
        let cells: Vec<String> =
            columns.iter().zip(line).map(|(column, cell)| cell_text(column, cell)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell_text(column: &Column, cell: &str) -> String {
    let trimmed = cell.trim();
    match column.layout {
        Layout::Function | Layout::Path if !trimmed.is_empty() => cell_code(trimmed),
        // Indent rows that are part of the row above.
        _ if cell.starts_with("  ") && column.layout == Layout::Word => {
            format!("&nbsp;&nbsp;{}", escape(trimmed))
        }
        _ => escape(trimmed),
    }
}

fn text(text: &Text) -> String {
    let span = |span: &Span| match span {
        Span::Plain(words) => escape(words),
        Span::Name(name) => code(name),
    };
    text.0.iter().map(span).collect()
}

fn printable_lines(lines: &[String]) -> String {
    lines.iter().map(|line| printable(line).into_owned()).collect::<Vec<_>>().join("\n")
}
