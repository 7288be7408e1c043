//! Profiles of other tools that are read whole: told apart by what they hold, not by their names, gzipped or not.
//!
//! What a format doesn't tell (threads, times, addresses) stays unknown in the profile, and a warning in it says so. Memory is bounded
//! by the size of the input: gzip may unpack to 64 MiB and 64 times its size, and a table in memory is a small multiple of its text.
//! Counts of equal samples become that many samples, up to two million.
//!
//! Not here: perf.data, whose stacks have yet to be unwound.

mod assembly;
mod error;
mod inflate;
mod json;
mod number;

use std::borrow::Cow;

use plumb_profile::Profile;

pub(crate) use assembly::{Assembly, Counted, Place, TOO_LARGE};
pub use error::ReadError;
pub(crate) use number::{Weight, whole};

use crate::{callgrind, firefox, folded, jfr, otlp, perf_script, pprof, speedscope};

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pprof's `profile.proto`.
    Pprof,
    /// Java Flight Recorder's file.
    Jfr,
    /// speedscope's own file.
    Speedscope,
    /// The Firefox Profiler's processed profile.
    Firefox,
    /// What `perf script` prints.
    PerfScript,
    /// Folded stacks.
    Folded,
}

/// Reads a profile in any of these formats.
pub fn read(bytes: &[u8]) -> Result<Profile, ReadError> {
    let bytes = &*unpacked(bytes)?;
    match format(bytes)? {
        Format::Pprof => pprof::read(bytes),
        Format::Jfr => jfr::read(bytes),
        Format::Speedscope => speedscope::read(bytes),
        Format::Firefox => firefox::read(bytes),
        Format::PerfScript => perf_script::read(bytes),
        Format::Folded => folded::read(bytes),
    }
}

/// The bytes without gzip.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    Ok(inflate::inflate(bytes)?.map_or(Cow::Borrowed(bytes), Cow::Owned))
}

/// What the bytes hold, which are not compressed any more.
fn format(bytes: &[u8]) -> Result<Format, ReadError> {
    let unknown = |looks: &'static str| Err(ReadError::Unknown { looks });
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => unknown("nothing at all"),
        _ if jfr::is(bytes) => Ok(Format::Jfr),
        Some(b'{' | b'[') => json::format(bytes),
        _ if !is_text(bytes) => {
            if otlp::is(bytes) {
                unknown(
                    "an OpenTelemetry profile, which plumb does not read: use the recording that it was made of, or send it to a server by plumb push",
                )
            } else if pprof::is(bytes) {
                Ok(Format::Pprof)
            } else {
                unknown("bytes of an unknown kind")
            }
        }
        _ if callgrind::is(bytes) => unknown(
            "callgrind's output, which plumb writes and does not read: use the recording that it was made of, or kcachegrind",
        ),
        _ if perf_script::is(bytes) => Ok(Format::PerfScript),
        _ if folded::is(bytes) => Ok(Format::Folded),
        _ => unknown("text, but neither folded stacks nor what perf script prints"),
    }
}

/// Whether the beginning has no character that text doesn't have.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().take(512).all(|&byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'))
}
