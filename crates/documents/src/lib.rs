//! Analyses as documents for programs: the JSON that commands print and a server answers, and the columns that flame graphs are drawn
//! from.
//!
//! Invariant: one maker for each document, so that a command and the page say the same of the same samples. Field names are stable.
//! It reads the files that a recording names (code, sources), nothing else.
//!
//! Not here: what is computed (`analyze`), text for people and options (`cli`), HTTP (`server`).

#![forbid(unsafe_code)]

pub mod answers;
pub mod change;
pub mod code;
pub mod explain;
pub mod findings;
pub mod flame;
pub mod folded;
pub mod heatmap;
pub mod kernel;
pub mod kernel_time;
pub mod label;
pub mod listing;
pub mod meta;
pub mod packet;
pub mod page_file;
pub mod procs;
pub mod rule;
pub mod source;
pub mod table;
pub mod text;
pub mod timeline;
pub mod waits;
pub mod waits_map;

/// Version of all documents, which docs/json.md lists. It grows when a field goes or changes its meaning, not when one is added.
pub const JSON_VERSION: u32 = 1;
