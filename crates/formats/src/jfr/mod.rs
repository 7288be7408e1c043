//! Java Flight Recorder files, as written by the JDK (11 and newer) and async-profiler.
//!
//! A file is a sequence of chunks. Each has its own tables of types and constants, both described by the chunk itself:
//! `chunk.rs` finds them and the events, `types.rs` reads the types, `value.rs` the values, `stacks.rs` frames and threads, `settings.rs` the
//! recorder's settings, `read.rs` creates samples. Invariant: each byte of an event is read once, and no count in the file allocates memory
//! before its bytes are seen.
//!
//! The only specification of the format is the JDK's own reader (`jdk.jfr.internal.consumer`). The crate `jfrs` allocates what a file's counts claim
//! and follows its types and offsets without a bound, which no caller can prevent; hence our own reader.
//!
//! Does not read other events, such as those of garbage collection.

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

use crate::foreign::ForeignError;

/// Whether the bytes begin like a JFR file.
#[must_use]
pub fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(chunk::MAGIC)
}

/// Reads the decompressed file.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    Ok(decode(bytes, usize::MAX)?.profile)
}
