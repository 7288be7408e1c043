//! The JSON trace event format of Perfetto, Chrome's tracing page and its DevTools: activity of each thread over time.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

mod read;
mod slices;
mod write;

pub(crate) use read::read;
pub use write::write;
