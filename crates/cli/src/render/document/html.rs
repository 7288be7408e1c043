//! The report as one page that needs nothing else: no script, no font, no file beside it.
//!
//! Invariant: all text is escaped; the page's own policy forbids whatever is not its style.

use std::io::{self, Write};

use super::{Block, Document, Span, Text};
use crate::render::table::{Column, Layout, Line};
use crate::terminal::{Heat, Output};

const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(document: &Document) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut out = Output::plain(&mut bytes);
    write(document, &mut out)?;
    out.flush()?;
    drop(out);
    Ok(bytes)
}

fn write(document: &Document, out: &mut Output<'_>) -> io::Result<()> {
    let title = escape(&document.title);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title} · plumb explain</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Hotspots of <code>{title}</code></h1>\n<p class=\"strong\">{}</p>",
        text(&document.summary)
    )?;
    for (number, section) in document.sections.iter().enumerate() {
        writeln!(out, "<section>\n<h2><span>{}</span>{}</h2>", number + 1, escape(section.title))?;
        section.blocks.iter().try_for_each(|one| block(one, out))?;
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</main>\n</body>\n</html>")
}

fn block(block: &Block, out: &mut Output<'_>) -> io::Result<()> {
    match block {
        Block::Text(words) => writeln!(out, "<p>{}</p>", text(words)),
        Block::Strong(words) => writeln!(out, "<p class=\"strong\">{}</p>", text(words)),
        Block::Note(words) => writeln!(out, "<p class=\"note\">{}</p>", escape(words)),
        Block::Heading(words) => writeln!(out, "<h3>{}</h3>", text(words)),
        Block::Facts(facts) => {
            writeln!(out, "<dl>")?;
            for (name, words) in facts {
                writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), text(words))?;
            }
            writeln!(out, "</dl>")
        }
        Block::Commands(commands) => writeln!(out, "<pre>{}</pre>", escape(&commands.join("\n"))),
        Block::Table { columns, lines } => table(columns, lines, out),
    }
}

fn table(columns: &[Column], lines: &[Line], out: &mut Output<'_>) -> io::Result<()> {
    writeln!(out, "<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr>")?;
    for column in columns {
        writeln!(out, "<th{}>{}</th>", class(column, ""), escape(column.title.trim()))?;
    }
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for line in lines {
        write!(out, "<tr>")?;
        for (column, cell) in columns.iter().zip(line) {
            write!(out, "<td{}>{}</td>", class(column, cell), escape(cell.trim()))?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

/// What a cell looks like: by its column, and by how much of the time it is.
fn class(column: &Column, cell: &str) -> String {
    let kind = match column.layout {
        Layout::Number => "number",
        Layout::Word if cell.starts_with("  ") => "part",
        Layout::Word => return String::new(),
        Layout::Path | Layout::Function => "code",
    };
    let share = cell.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok());
    let heat = match share.filter(|_| column.layout == Layout::Number).map(Heat::of) {
        Some(Heat::Hot) => " hot",
        Some(Heat::Warm) => " warm",
        _ => "",
    };
    format!(" class=\"{kind}{heat}\"")
}

fn text(text: &Text) -> String {
    let span = |span: &Span| match span {
        Span::Plain(words) => escape(words),
        Span::Name(name) => format!("<code>{}</code>", escape(name)),
    };
    text.0.iter().map(span).collect()
}

/// Text as it may stand in an element or an attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
