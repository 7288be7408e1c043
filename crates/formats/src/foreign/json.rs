//! Which of the JSON formats a text is: by its outermost keys.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Format, ReadError};

/// Keys that tell. What stands behind them is looked at by the format's reader.
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
}

#[derive(Deserialize)]
struct MetaKeys {
    #[serde(rename = "preprocessedProfileVersion")]
    processed: Option<IgnoredAny>,
}

pub(super) fn format(bytes: &[u8]) -> Result<Format, ReadError> {
    let unknown = |looks| Err(ReadError::Unknown { looks });
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
        return unknown("a list as JSON (a trace?), which can't be read");
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
        _ if keys.trace_events.is_some() => {
            unknown("a trace as Chrome and Perfetto have it, which can't be read")
        }
        _ => unknown("JSON of an unknown kind"),
    }
}
