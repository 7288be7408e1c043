//! The recording, `.plumb`: one zip archive of Parquet tables, readable without plumb.

mod read;
mod write;

pub use read::{ReadError, read};
pub use write::{WriteError, write};
