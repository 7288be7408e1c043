//! Tables of unwind rules for callers: built from files, cached on disk between recordings, and looked up during a
//! recording.
//!
//! Invariant: results do not depend on the cache. A table has the same rules as its file's call-frame information.
//!
//! Elsewhere: the table format (`plumb_unwind::table`), and the choice of files that get a table.

mod code;
mod loader;
mod module;
mod tables;

pub use loader::TableLoader;
pub use module::{GoFunctions, module_of};
pub use tables::{Description, NoTable, Size, Source, TableCache};
