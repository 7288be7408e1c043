//! Callgrind's format, for KCachegrind and callgrind_annotate: what each line cost, and the calls by what they led to.
//!
//! <https://valgrind.org/docs/manual/cl-format.html>. Not here: reading it.

mod write;

pub use write::write;
