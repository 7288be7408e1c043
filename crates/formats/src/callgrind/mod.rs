//! Callgrind's format, for KCachegrind and callgrind_annotate: the cost of each line, and the calls with their inclusive cost.
//!
//! <https://valgrind.org/docs/manual/cl-format.html>.

mod graph;
mod paths;
mod read;
mod write;

pub(crate) use read::read;
pub use write::write;

/// Whether a text begins as this format does: with the format line, or with the version line of older writers.
pub(crate) fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(b"# callgrind format") || bytes.starts_with(b"version: 1\ncreator: ")
}
