//! The trace event format as JSON, of Perfetto, Chrome's tracing page and its DevTools: what each thread did over time.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

mod read;
mod slices;
mod write;

pub(crate) use read::read;
pub use write::write;
