//! Distinguishes the JSON formats by their outermost keys.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{ForeignError, Format};
use crate::{folded, perf_script};

/// Size of the start of a list that certainly contains one complete event.
const FIRST_EVENTS: usize = 1 << 16;

/// The distinguishing keys. Their values are left to the format's reader.
#[derive(Deserialize)]
struct Keys {
    #[serde(rename = "$schema")]
    schema: Option<serde_json::Value>,
    shared: Option<IgnoredAny>,
    profiles: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
    meta: Option<MetaKeys>,
    #[serde(rename = "traceEvents")]
    trace_events: Option<IgnoredAny>,
    nodes: Option<IgnoredAny>,
    #[serde(rename = "startTime")]
    start_time: Option<IgnoredAny>,
    head: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct MetaKeys {
    #[serde(rename = "preprocessedProfileVersion")]
    processed: Option<IgnoredAny>,
}

/// Whether a text that starts with a bracket is JSON, not folded stacks or the output of perf script, whose first name may start so.
pub(super) fn is(bytes: &[u8]) -> bool {
    if !folded::is(bytes) && !perf_script::is(bytes) {
        return true;
    }
    let line = bytes.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let read = serde_json::from_slice::<IgnoredAny>(line.unwrap_or_default());
    read.map_or_else(|error| error.is_eof(), |_| true)
}

pub(super) fn format(bytes: &[u8]) -> Result<Format, ForeignError> {
    let unknown = |looks| Err(ForeignError::Unknown { looks });
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        // A truncated list is still a trace, though only its start is valid JSON.
        let is_trace = bytes[..bytes.len().min(FIRST_EVENTS)].windows(4).any(|window| window == b"\"ph\"");
        return if is_trace {
            Ok(Format::Trace)
        } else {
            unknown("a list as JSON that is no list of trace events")
        };
    }
    let keys: Keys = serde_json::from_slice(bytes)?;
    let schema = keys.schema.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
    if schema.contains("speedscope") || (keys.shared.is_some() && keys.profiles.is_some()) {
        return Ok(Format::Speedscope);
    }
    match keys.meta {
        Some(MetaKeys { processed: Some(_) }) => Ok(Format::Firefox),
        Some(_) if keys.threads.is_some() => unknown(
            "a Firefox profile as Gecko writes it: open it in the Firefox Profiler and save it from there",
        ),
        _ if keys.trace_events.is_some() => Ok(Format::Trace),
        _ if keys.nodes.is_some() && keys.start_time.is_some() => Ok(Format::V8),
        _ if keys.head.is_some() => unknown(
            "a heap profile of V8, or a CPU profile of one older than 2016, which can't be read: record with `node --cpu-prof`",
        ),
        _ => unknown("JSON of an unknown kind"),
    }
}
