//! The trace event format as JSON, for Perfetto and Chrome's tracing page: what each thread did over time.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. Not here: reading it.

mod write;

pub use write::write;
