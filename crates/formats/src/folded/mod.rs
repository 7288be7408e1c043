//! Folded stacks: one line a distinct stack, `comm;outermost;...;innermost count`.

/// What FlameGraph's scripts put behind names: of the kernel, inlined, made by a just-in-time compiler, a thread that waits.
const ANNOTATIONS: [&str; 4] = ["_[k]", "_[i]", "_[j]", "_[w]"];

mod read;
mod write;

pub(crate) use read::{is, read};
pub use write::{FoldedOptions, write};
