//! Checks before and around the parquet crate, for recordings and blocks alike: a hostile file becomes an error, never a panic or
//! unbounded memory.
//!
//! - [`check_pages`] walks the page headers of a column chunk before a page is decompressed.
//! - [`CheckedPages`] checks each decompressed page whose decoder would allocate by lengths inside the page.
//! - [`guarded`] turns a panic of a decoder into an error.
//!
//! Callers choose the limits. Not here: schemas, tables, and the errors that users see.

mod checked;
mod delta;
mod guard;
mod pages;
mod thrift;

pub use checked::{CheckedPages, PageBudget};
pub use guard::{guarded, panics_become_errors};
pub use pages::{DELTA_BYTE_ARRAY, PLAIN, PageClaim, check_pages};
