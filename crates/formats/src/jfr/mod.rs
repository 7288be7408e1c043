//! Java Flight Recorder's files, as the JDK (11 and newer) and async-profiler write them.
//!
//! A file is a row of chunks. Each has its own tables of types and constants, both described by the chunk itself:
//! `chunk.rs` finds them and the events, `types.rs` reads the types, `value.rs` the values, `stacks.rs` frames and threads, `settings.rs` what
//! the recorder was told, `read.rs` makes samples. The invariant: each byte of an event is read once, and no count in the file reserves memory
//! before the bytes for it are seen.
//!
//! The format has no specification but the JDK's own reader (`jdk.jfr.internal.consumer`). The crate `jfrs` reserves what a file's counts say
//! and follows its types and offsets without end, which no caller can guard against; hence a reader of our own.
//!
//! Not here: events that are no samples, such as those of the garbage collector.

mod bytes;
mod chunk;
mod event;
mod read;
mod settings;
mod stacks;
mod types;
mod value;

use plumb_profile::Profile;

pub use event::JfrEvent;
pub use read::{JfrRecording, JfrSample, decode};

use crate::foreign::ReadError;

/// Whether the bytes begin as such a file does.
#[must_use]
pub fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(chunk::MAGIC)
}

/// Reads the file, not compressed.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    Ok(decode(bytes, usize::MAX)?.profile)
}
