//! What `perf script` prints, and `plumb script` too.

mod head;
mod read;

pub(crate) use read::{is, read};
