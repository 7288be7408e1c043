//! A report as a document, independent of its format: text, Markdown or HTML.
//!
//! Elsewhere: the content of reports.

pub mod html;
pub mod markdown;
pub mod text;

pub use plumb_documents::text::{Span, Text};

use crate::render::table::{Cells, Column, Layout};

/// A report.
pub struct Document {
    pub title: String,
    /// The conclusion, in a sentence or two.
    pub summary: Text,
    pub sections: Vec<ReportSection>,
}

/// A numbered section.
pub struct ReportSection {
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// A block of a section.
pub enum Block {
    /// Running text.
    Text(Text),
    /// Emphasised text: the verdict.
    Strong(Text),
    /// A remark in small type on how something is judged.
    Note(String),
    /// Names with their values, line by line.
    Facts(Vec<(String, Text)>),
    /// A table.
    Table { columns: Vec<Column>, lines: Vec<Cells> },
    /// A heading within a section.
    Heading(Text),
    /// Commands to type.
    Commands(Vec<String>),
}

impl ReportSection {
    pub fn new(title: &'static str) -> Self {
        ReportSection { title, blocks: Vec::new() }
    }

    pub fn say(&mut self, text: impl Into<Text>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Note(text.into()));
    }

    /// Adds a table unless it is empty.
    pub fn table(&mut self, columns: &[(&'static str, Layout)], lines: Vec<Cells>) {
        if !lines.is_empty() {
            let columns = columns.iter().map(|&(title, layout)| Column { title, layout }).collect();
            self.blocks.push(Block::Table { columns, lines });
        }
    }
}
