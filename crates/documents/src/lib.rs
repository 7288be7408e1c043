//! Analyses as documents: typed answers that commands print and a server gives, and the columns that flame graphs are drawn from.
//!
//! An answer is a value that serializes to JSON. The columns of its tables are described once ([`mod@column`]); CSV and text are made of them.
//! The page's types are made of the types here (`page_types.rs`).
//!
//! Invariant: one maker for each document, so that a command and the page say the same of the same samples. Field names are stable.
//! It reads the files that a recording names (code, sources), nothing else.
//!
//! Not here: what is computed (`analyze`), layout on a terminal and options (`cli`), HTTP (`server`).

#![forbid(unsafe_code)]

#[macro_use]
mod document;

pub mod advice;
pub mod answers;
pub mod change;
pub mod code;
pub mod column;
pub mod compare;
pub mod duration;
pub mod explain;
pub mod findings;
pub mod flame;
pub mod folded;
pub mod fork;
pub mod functions;
pub mod heat;
pub mod heatmap;
pub mod html;
pub mod json;
pub mod kernel;
pub mod kernel_calls;
pub mod kernel_time;
pub mod label;
pub mod listing;
pub mod markdown;
pub mod meta;
pub mod metric;
pub mod packet;
pub mod padding;
pub mod page_file;
pub mod percent;
pub mod perf_script;
pub mod procs;
pub mod report;
pub mod sections;
pub mod source;
pub mod stack;
pub mod stopped;
pub mod store_report;
pub mod table;
pub mod text;
pub mod timeline;
pub mod trace;
pub mod waits;
pub mod waits_map;

#[cfg(test)]
mod page_types;

/// Version of all documents, which docs/json.md lists. It grows when a field goes or changes its meaning, not when one is added.
pub const JSON_VERSION: u32 = 1;
