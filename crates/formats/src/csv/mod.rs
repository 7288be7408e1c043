//! Samples as comma-separated values, a line each, for spreadsheets, pandas, DuckDB and the like.
//!
//! Not here: reading it; tables of functions, which `plumb report --csv` prints.

mod write;

pub use write::{field, write};
