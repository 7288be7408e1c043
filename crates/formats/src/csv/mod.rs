//! Samples as comma-separated values, one a line, for spreadsheets, pandas, DuckDB and similar tools.
//!
//! Does not read CSV; tables of functions are printed by `plumb report --csv`.

mod write;

pub(crate) use write::is;
pub use write::{field, io_error, write};
