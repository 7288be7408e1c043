//! How things are written for people and programs, whichever command says them: tables, durations, names, documents, pages, pictures.
//!
//! Invariant: nothing here computes what it writes, and no command writes HTML or escapes it by itself. Not here: the terminal
//! ([`crate::terminal`]).

/// Version of all that `--json` writes, which docs/json.md lists. It grows when a field goes or changes its meaning, not when one is added.
pub const JSON_VERSION: u32 = 1;

pub mod change;
pub mod change_json;
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
