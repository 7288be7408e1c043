//! Reads a `.cpuprofile`: a tree of nodes and the node of each sample.

use std::borrow::Cow;

use plumb_profile::Profile;
use serde::Deserialize;

use super::samples::{Node, Samples};
use crate::foreign::{Assembly, ForeignError};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow)]
    nodes: Vec<Node<'a>>,
    /// Start in microseconds.
    start_time: f64,
    end_time: f64,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default)]
    time_deltas: Vec<f64>,
    /// Added by VS Code's profiler.
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
}

/// Reads the file.
pub(crate) fn read(bytes: &[u8]) -> Result<Profile, ForeignError> {
    let file: File<'_> = serde_json::from_slice(bytes)?;
    let mut assembly = Assembly::new();
    let event = assembly.event("time", "ns");
    let thread = assembly.thread(None, None, file.title.as_deref().unwrap_or_default(), "");
    let mut samples = Samples::new(file.start_time);
    samples.add_nodes(&mut assembly, &file.nodes)?;
    samples.add(&file.samples, &file.time_deltas)?;
    let idle_ns = samples.finish(&mut assembly, thread, event, Some(file.end_time))?;
    let warnings = &mut assembly.profile.meta.warnings;
    warnings.push(
        "imported from a CPU profile of V8, which tells neither processors, threads nor addresses; its time is wall-clock time of one \
         thread"
            .into(),
    );
    if idle_ns > 0 {
        warnings.push(format!("{:.3} s in which the thread was idle are left out", idle_ns as f64 / 1e9));
    }
    Ok(assembly.finish("V8"))
}
