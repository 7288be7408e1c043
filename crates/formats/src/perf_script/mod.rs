//! The output format of `perf script`, and of `plumb script`.

mod head;
mod names;
mod read;

pub use names::{comm, event, file, source, symbol};

pub(crate) use read::{is, read};
