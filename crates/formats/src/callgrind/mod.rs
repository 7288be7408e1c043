//! Callgrind's format, for KCachegrind and callgrind_annotate: what each line cost, and the calls by what they led to.
//!
//! <https://valgrind.org/docs/manual/cl-format.html>.

mod graph;
mod paths;
mod read;
mod write;

pub(crate) use read::read;
pub use write::write;

/// Whether a text begins as this format does: with the line that says so, or with the version that older writers begin with.
pub(crate) fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(b"# callgrind format") || bytes.starts_with(b"version: 1\ncreator: ")
}
