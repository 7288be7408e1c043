//! Joins lines of calls with their stacks: samples taken at the start of calls are matched by thread and time.

use std::collections::HashMap;
use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Filter, Kind, NodeId, View, ViewFrame};
use plumb_profile::Profile;
use plumb_syscalls::SystemCall;
use serde_json::{Value, json};

use crate::terminal::printable;

/// A sample taken this long before a call's start still belongs to it: the sample and the timestamp are taken in either order.
const BEFORE_NS: u64 = 200_000;

/// A line waiting for its stack.
pub(super) struct Held {
    line: String,
    tid: u32,
    begin_ns: u64,
    end_ns: u64,
}

impl Held {
    /// The line of a call.
    pub fn new(call: &SystemCall<'_>, line: String) -> Self {
        Self { line, tid: call.tid, begin_ns: call.begin_ns, end_ns: call.end_ns }
    }
}

/// Writes the lines with their stacks.
pub(super) fn write(held: &[Held], profile: &Profile, is_json: bool, out: &mut impl Write) -> Result<()> {
    let view = View::new(profile, &Filter::default());
    let mut samples: HashMap<u32, Vec<(u64, NodeId)>> = HashMap::new();
    for one in view.samples() {
        let tid = profile.threads[one.sample.thread].tid;
        samples.entry(tid).or_default().push((one.sample.time_ns, one.node));
    }
    samples.values_mut().for_each(|samples| samples.sort_unstable_by_key(|(time, _)| *time));
    // End of each thread's previous call: an earlier sample does not belong to this call.
    let mut ended: HashMap<u32, u64> = HashMap::new();
    for call in held {
        let since =
            ended.insert(call.tid, call.end_ns).unwrap_or(0).max(call.begin_ns.saturating_sub(BEFORE_NS));
        let found = samples.get(&call.tid).and_then(|samples| last_within(samples, since, call.end_ns));
        let frames: Vec<&ViewFrame<'_>> = found.map_or_else(Vec::new, |node| view.stack(node).collect());
        let frames = frames.into_iter().filter(|frame| frame.kind != Kind::Kernel);
        if is_json {
            write_json(call, frames, out)?;
        } else {
            write_text(call, frames, out)?;
        }
    }
    Ok(())
}

/// The last sample of a thread within an interval.
fn last_within(samples: &[(u64, NodeId)], since: u64, until: u64) -> Option<NodeId> {
    let after = samples.partition_point(|(time, _)| *time <= until);
    samples.get(..after)?.last().filter(|(time, _)| *time >= since).map(|(_, node)| *node)
}

fn write_text<'a>(
    call: &Held,
    frames: impl Iterator<Item = &'a ViewFrame<'a>>,
    out: &mut impl Write,
) -> Result<()> {
    out.write_all(call.line.as_bytes())?;
    let mut any = false;
    for frame in frames {
        any = true;
        let file = if frame.dso_path.is_empty() {
            String::new()
        } else {
            format!(" ({})", printable(frame.dso_name()))
        };
        let place = match frame.line {
            0 => String::new(),
            line => format!(" {}:{line}", printable(frame.file)),
        };
        let inlined = if frame.inlined { " (inlined)" } else { "" };
        writeln!(out, "{:>26}{}{inlined}{file}{place}", "", printable(&frame.name))?;
    }
    if !any {
        writeln!(out, "{:>26}no stack was taken", "")?;
    }
    Ok(())
}

fn write_json<'a>(
    call: &Held,
    frames: impl Iterator<Item = &'a ViewFrame<'a>>,
    out: &mut impl Write,
) -> Result<()> {
    let mut line: Value = serde_json::from_str(&call.line)?;
    let frame = |frame: &ViewFrame<'_>| {
        json!({
            "name": frame.name,
            "dso": frame.dso_path,
            "inlined": frame.inlined,
            "file": frame.file,
            "line": frame.line,
            "marker": frame.kind == Kind::Marker,
        })
    };
    line["stack"] = frames.map(frame).collect();
    Ok(plumb_documents::json::write(&line, &mut *out)?)
}
