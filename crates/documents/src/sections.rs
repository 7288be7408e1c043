//! A report in sections, independent of its format: text, Markdown or HTML.
//!
//! Elsewhere: the contents of reports; their layout on a terminal (`cli`).

pub mod html;
pub mod markdown;

use crate::text::Text;

/// Alignment of a column's text, and how it is shortened where a line is too long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Right-aligned, never shortened.
    Number,
    /// Never shortened.
    Word,
    /// A file: shortened in the middle.
    Path,
    /// A function: template arguments are folded first.
    Function,
}

/// A column of a table.
#[derive(Clone, Copy)]
pub struct TableColumn {
    /// Heading.
    pub title: &'static str,
    /// Alignment.
    pub layout: Layout,
}

/// The cells of a line.
pub type Cells = Vec<String>;

/// Suffix of an inlined function's name.
pub const INLINED: &str = " (inlined)";

/// A report in sections.
pub struct SectionedReport {
    /// The target.
    pub title: String,
    /// The conclusion, in a sentence or two.
    pub summary: Text,
    /// The sections, in order.
    pub sections: Vec<ReportSection>,
}

/// A numbered section.
pub struct ReportSection {
    /// Title; empty: none.
    pub title: &'static str,
    /// Contents.
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
    Table {
        /// Columns.
        columns: Vec<TableColumn>,
        /// Lines, a cell for each column.
        lines: Vec<Cells>,
    },
    /// A heading within a section.
    Heading(Text),
    /// Commands to type.
    Commands(Vec<String>),
}

impl ReportSection {
    /// Creates a section without blocks.
    pub fn new(title: &'static str) -> Self {
        ReportSection { title, blocks: Vec::new() }
    }

    /// Adds running text.
    pub fn say(&mut self, text: impl Into<Text>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds a remark.
    pub fn note(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Note(text.into()));
    }

    /// Adds a table unless it is empty.
    pub fn table(&mut self, columns: &[(&'static str, Layout)], lines: Vec<Cells>) {
        if !lines.is_empty() {
            let columns = columns.iter().map(|&(title, layout)| TableColumn { title, layout }).collect();
            self.blocks.push(Block::Table { columns, lines });
        }
    }
}
