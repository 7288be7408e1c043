//! Folded stacks: one line a distinct stack, `comm;outermost;...;innermost count`.

/// Suffixes of FlameGraph's scripts: kernel, inlined, JIT-compiled, waiting thread.
const ANNOTATIONS: [&str; 4] = ["_[k]", "_[i]", "_[j]", "_[w]"];

mod evidence;
mod read;
mod write;

pub(crate) use read::{is, read};
pub use write::{FoldedOptions, write};
