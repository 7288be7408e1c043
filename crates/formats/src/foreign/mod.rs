//! Profiles of other tools that are read as a whole: recognized by content, not by name, compressed or not.
//!
//! Information that a format lacks (threads, times, addresses) stays unknown in the profile, and a warning in it says so. Memory is bounded
//! by the size of the input: it may expand to 64 MiB plus 64 times its size, and a table in memory is a small multiple of its text.
//! Counts of equal samples become that many samples, up to two million.
//!
//! Elsewhere: perf.data, whose stacks must be unwound first.

mod assembly;
mod error;
mod json;
mod number;
mod unpack;

use std::borrow::Cow;

use plumb_profile::Profile;

pub(crate) use assembly::{Assembly, Counted, Place, TOO_LARGE};
pub use error::ForeignError;
pub(crate) use number::whole;
pub use unpack::{compression, unpack};

use crate::{
    callgrind, chrome, csv, firefox, folded, go_text, jfr, otlp, perf_script, pprof, speedscope, v8,
};

/// A supported input format.
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
    /// Trace events as JSON.
    Trace,
    /// V8's `.cpuprofile`.
    V8,
    /// Callgrind's output.
    Callgrind,
    /// The output of `perf script`.
    PerfScript,
    /// The text formats of Go's `runtime/pprof`.
    GoText,
    /// Folded stacks.
    Folded,
}

/// Reads a profile in any of these formats.
pub fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let bytes = &*unpacked(bytes)?;
    // Editors and Windows put a byte order mark before a text.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match format(bytes)? {
        Format::Pprof => pprof::read(bytes),
        Format::Jfr => jfr::read(bytes),
        Format::Speedscope => speedscope::read(bytes),
        Format::Firefox => firefox::read(bytes),
        Format::Trace => chrome::read(bytes),
        Format::V8 => v8::read(bytes),
        Format::Callgrind => callgrind::read(bytes),
        Format::PerfScript => perf_script::read(bytes),
        Format::GoText => go_text::read(bytes),
        Format::Folded => folded::read(bytes),
    }
}

/// Decompresses the bytes if needed.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ForeignError> {
    Ok(unpack(bytes)?.map_or(Cow::Borrowed(bytes), Cow::Owned))
}

/// Returns the format of decompressed bytes.
fn format(bytes: &[u8]) -> Result<Format, ForeignError> {
    let unknown = |looks: &'static str| Err(ForeignError::Unknown { looks });
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => unknown("nothing at all"),
        _ if jfr::is(bytes) => Ok(Format::Jfr),
        Some(b'{' | b'[') if json::is(bytes) => json::format(bytes),
        _ if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") => {
            unknown("text in UTF-16: convert it with `iconv -f UTF-16 -t UTF-8` first")
        }
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
        _ if callgrind::is(bytes) => Ok(Format::Callgrind),
        _ if go_text::is(bytes) => Ok(Format::GoText),
        _ if perf_script::is(bytes) => Ok(Format::PerfScript),
        _ if folded::is(bytes) => Ok(Format::Folded),
        _ if csv::is(bytes) => unknown(
            "samples in CSV, which plumb writes and does not read: use the recording that they are of",
        ),
        _ => unknown("text, but neither folded stacks nor what perf script prints"),
    }
}

/// Whether the start contains only characters that text may have.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().take(512).all(|&byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'))
}
