//! A report as a document: what is said, however it is written: as text, Markdown or a page.
//!
//! Not here: what a report says.

pub mod html;
pub mod markdown;
pub mod text;

pub use plumb_report::text::{Span, Text};

use crate::render::table::{Column, Layout, Line};

/// A report.
pub struct Document {
    pub title: String,
    /// What it comes to, in a sentence or two.
    pub summary: Text,
    pub sections: Vec<Section>,
}

/// A numbered part of it.
pub struct Section {
    pub title: &'static str,
    pub blocks: Vec<Block>,
}

/// A piece of a section.
pub enum Block {
    /// Running text.
    Text(Text),
    /// What stands out: the verdict.
    Strong(Text),
    /// A remark in smaller letters: how something is judged.
    Note(String),
    /// A name and what it is, line by line.
    Facts(Vec<(String, Text)>),
    /// A table.
    Table { columns: Vec<Column>, lines: Vec<Line> },
    /// A heading inside of a section.
    Heading(Text),
    /// Commands to type.
    Commands(Vec<String>),
}

impl Section {
    pub fn new(title: &'static str) -> Self {
        Section { title, blocks: Vec::new() }
    }

    pub fn say(&mut self, text: impl Into<Text>) {
        self.blocks.push(Block::Text(text.into()));
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Note(text.into()));
    }

    /// Adds a table if it has lines.
    pub fn table(&mut self, columns: &[(&'static str, Layout)], lines: Vec<Line>) {
        if !lines.is_empty() {
            let columns = columns.iter().map(|&(title, layout)| Column { title, layout }).collect();
            self.blocks.push(Block::Table { columns, lines });
        }
    }
}
