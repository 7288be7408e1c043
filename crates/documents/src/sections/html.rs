//! The report as a self-contained HTML page: no script, no font, no other file.
//!
//! Invariant: all text is escaped by the templates; the content policy forbids everything but the page's own style.

use maud::{Markup, html};

use super::{Block, Cells, Layout, SectionedReport, TableColumn as Column};
use crate::heat::Heat;
use crate::html::page as framed;
use crate::text::{Span, Text};

const STYLE: &str = include_str!("page.css");

/// Renders the page.
pub fn page(document: &SectionedReport) -> String {
    let body = html! {
        main {
            h1 { "Hotspots of " code { (document.title) } }
            p.strong { (text(&document.summary)) }
            @for (number, section) in document.sections.iter().enumerate() {
                section {
                    h2 { span { (number + 1) } (section.title) }
                    @for one in &section.blocks { (block(one)) }
                }
            }
        }
    };
    framed(&format!("{} · plumb explain", document.title), STYLE, &body).into_string()
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Text(words) => html! { p { (text(words)) } },
        Block::Strong(words) => html! { p.strong { (text(words)) } },
        Block::Note(words) => html! { p.note { (words) } },
        Block::Heading(words) => html! { h3 { (text(words)) } },
        Block::Facts(facts) => html! {
            dl {
                @for (name, words) in facts { dt { (name) } dd { (text(words)) } }
            }
        },
        Block::Commands(commands) => html! { pre { (commands.join("\n")) } },
        Block::Table { columns, lines } => table(columns, lines),
    }
}

fn table(columns: &[Column], lines: &[Cells]) -> Markup {
    html! {
        div.table tabindex="0" {
            table {
                thead {
                    tr {
                        @for column in columns { th class=[class(column, "")] { (column.title.trim()) } }
                    }
                }
                tbody {
                    @for line in lines {
                        tr {
                            @for (column, cell) in columns.iter().zip(line) {
                                td class=[class(column, cell)] { (cell.trim()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The CSS class of a cell, by its column and its share.
fn class(column: &Column, cell: &str) -> Option<String> {
    let kind = match column.layout {
        Layout::Number => "number",
        Layout::Word if cell.starts_with("  ") => "part",
        Layout::Word => return None,
        Layout::Path | Layout::Function => "code",
    };
    let share = cell.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok());
    let heat = match share.filter(|_| column.layout == Layout::Number).map(Heat::of) {
        Some(Heat::Hot) => " hot",
        Some(Heat::Warm) => " warm",
        _ => "",
    };
    Some(format!("{kind}{heat}"))
}

fn text(text: &Text) -> Markup {
    html! {
        @for span in &text.0 {
            @match span {
                Span::Plain(words) => (words),
                Span::Name(name) => code { (name) },
            }
        }
    }
}
