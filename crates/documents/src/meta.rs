//! Metadata of a recording as JSON.

use plumb_profile::Meta;
use serde_json::{Value, json};

/// Facts about a recording, or about a part of it (see [`View::meta`](plumb_analyze::View::meta)).
pub fn document(meta: &Meta) -> Value {
    json!({
        "version": crate::JSON_VERSION,
        "command": meta.command,
        "recorder": meta.recorder,
        "host": meta.host,
        "kernel": meta.kernel,
        "arch": meta.arch,
        "cpus": meta.cpus,
        "start_unix_ns": meta.start_unix_ns,
        "duration_ns": meta.duration_ns,
        "target_cpu_ns": meta.target_cpu_ns,
        "frequency_hz": meta.frequency_hz,
        "occurrences": match meta.occurrences[..] {
            [only] => only,
            _ => None,
        },
        "scope": meta.scope.name(),
        "lost_samples": meta.lost_samples,
        "damaged_records": meta.damaged_records,
        "warnings": meta.warnings,
    })
}
