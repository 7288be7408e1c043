//! How things are written for people and programs, whichever command says them: tables, durations, names, documents, pages, pictures.
//!
//! Invariant: nothing here computes what it writes, and no command writes HTML or escapes it by itself. Not here: the terminal
//! ([`crate::terminal`]).

pub mod change;
pub mod columns;
pub mod document;
pub mod duration;
pub mod flame;
pub mod folded;
pub mod label;
pub mod markdown;
pub mod page;
pub mod perf_script;
pub mod precision;
pub mod rule;
pub mod table;
