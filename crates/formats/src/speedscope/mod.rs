//! speedscope's own file format, for <https://www.speedscope.app>: a profile for each thread, sorted by time.
//!
//! <https://www.speedscope.app/file-format-schema.json>.

mod read;
mod write;

pub(crate) use read::read;
pub use write::write;
