//! Output formats shared by all commands: tables, durations, names, documents, pages, flame graphs.
//!
//! Invariant: nothing here computes what it writes, and no command writes or escapes HTML on its own. Elsewhere: the terminal
//! ([`crate::terminal`]).

pub mod document;
pub use plumb_documents::change::words as change;
pub use plumb_documents::{duration, markdown, metric, padding, perf_script};
pub mod flame;
pub mod folded;
pub mod label;
pub mod page;
pub mod rule;
pub mod table;
