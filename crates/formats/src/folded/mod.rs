//! Folded stacks: one line a distinct stack, `comm;outermost;...;innermost count`.

mod write;

pub use write::{Options, write};
