//! Tables of the rules for callers: made of files, kept on disk between recordings, found while one goes on.
//!
//! Invariant: no result depends on what is kept. A table says what its file's call-frame information says.
//!
//! Not here: what a table is (`plumb_unwind::table`), which files are worth one.

mod code;
mod loader;
mod module;
mod tables;

pub use loader::TableLoader;
pub use module::{GoFunctions, module_of};
pub use tables::{Description, NoTable, Size, Source, TableCache};
