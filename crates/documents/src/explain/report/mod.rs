//! The report for people: the answer on one screen, and all sections. Text, Markdown and HTML are written of the same blocks.
//!
//! Elsewhere: the same for programs ([`ExplainDocument`](super::ExplainDocument)), the analysis (`analyze`).

mod brief;
mod calls;
mod sections;
mod title;
mod waits;

use std::path::Path;

use plumb_analyze::FrameIndex;

use crate::text::Text;

pub use brief::document as brief;
pub use sections::document as full;

/// Facts of a report that the analysis does not know.
pub struct ReportContext<'a> {
    /// File that is read; `None`: the recording was made for the report.
    pub file: Option<&'a Path>,
    /// Patterns of functions that are left out.
    pub ignore: &'a [String],
    /// Whether the user named a recording of waits.
    pub asks_waits: bool,
    /// Commands to type.
    pub commands: ReportCommands<'a>,
    /// Lacks of many samples, with the remedies.
    pub lacks: Vec<(String, Text)>,
    /// Ending of a headline on code without names: the remedy.
    pub names_remedy: String,
    /// Remedy for a function without a name; empty: none is known.
    pub names_of: &'a dyn Fn(FrameIndex) -> String,
}

/// Commands that a report names, as a user types them.
pub struct ReportCommands<'a> {
    /// Commands that make the report again.
    pub again: &'a [String],
    /// The report with all sections.
    pub full: String,
    /// Recording of the target's waits.
    pub off_cpu: String,
    /// Advice on the target's system calls.
    pub kernel: String,
    /// The instructions of a function.
    pub annotate: &'a dyn Fn(&str) -> String,
    /// Whether a file has the recording afterwards.
    pub is_kept: bool,
}
