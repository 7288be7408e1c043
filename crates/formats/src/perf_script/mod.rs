//! What `perf script` prints, and `plumb script` too.

mod head;
mod names;
mod read;

pub use names::{comm, event, file, source, symbol};

pub(crate) use read::{is, read};
