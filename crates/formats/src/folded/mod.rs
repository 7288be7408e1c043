//! Folded stacks: one line a distinct stack, `comm;outermost;...;innermost count`.

mod read;
mod write;

pub(crate) use read::{is, read};
pub use write::{Options, write};
