//! Stacks for programs. Field names are stable.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Kind, ViewFrame};
use plumb_interpreters::{Merged, ScriptFrame};
use plumb_profile::Found;
use plumb_snapshot::{Refusal, Snapshot, StoppedProcess, StoppedThread};
use serde_json::{Value, json};

use super::{Stacks, Trust, state_text};
use crate::terminal::Output;

/// Writes one JSON object with all processes, those that could not be looked at too.
pub fn write(snapshot: &Snapshot, stacks: &Stacks<'_>, out: &mut Output<'_>) -> Result<()> {
    let of = |(pid, outcome): &(u32, Result<StoppedProcess, Refusal>)| match outcome {
        Ok(found) => process(*pid, found, stacks),
        Err(refusal) => json!({"pid": pid, "error": refusal.to_string()}),
    };
    let processes: Vec<Value> = snapshot.processes.iter().map(of).collect();
    let document = json!({ "version": plumb_documents::JSON_VERSION, "processes": processes });
    plumb_documents::json::write(&document, &mut *out)?;
    Ok(out.flush()?)
}

fn process(pid: u32, process: &StoppedProcess, stacks: &Stacks<'_>) -> Value {
    let threads: Vec<Value> = process.threads.iter().map(|found| thread(process, found, stacks)).collect();
    json!({
        "pid": pid,
        "executable": process.executable,
        "interpreter": process.interpreter.as_ref().map(|found| found.name()),
        "held_ns": u64::try_from(process.held.as_nanos()).ok(),
        "threads": threads,
    })
}

fn thread(process: &StoppedProcess, thread: &StoppedThread, stacks: &Stacks<'_>) -> Value {
    let found = stacks.of(process, thread);
    let mut marker = None;
    let mut trust = Trust::Certain;
    let mut frames = Vec::new();
    for found in found {
        match found {
            Merged::Native((_, found)) if found.kind == Kind::Marker => marker = Some(found),
            Merged::Native((at, found)) => {
                trust = trust.min(Trust::of(found.found));
                frames.push(frame(at, found, trust));
            }
            Merged::Script(found) => frames.push(script_frame(found)),
        }
    }
    json!({
        "tid": thread.tid,
        "name": thread.name,
        "state": thread.state,
        "state_text": state_text(thread.state),
        "kernel": thread.kernel,
        "complete": thread.sample.is_ok() && marker.is_none(),
        "cut": marker.and_then(|frame| frame.cut).map(|cut| cut.name()),
        "cut_file": marker.map(|frame| frame.dso_path).filter(|path| !path.is_empty()),
        "script_error": thread.script.as_ref().err().map(ToString::to_string),
        "no_stack": thread.sample.err().map(|why| why.name()),
        "frames": frames,
    })
}

fn script_frame(frame: &ScriptFrame) -> Value {
    json!({
        "kind": "script",
        "symbol": frame.function,
        "file": frame.file,
        "line": (frame.line > 0).then_some(frame.line),
    })
}

fn frame(address: u64, frame: &ViewFrame<'_>, trust: Trust) -> Value {
    let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "kind": "native",
        "address": format!("{address:#x}"),
        "symbol": frame.named.then_some(&*frame.name),
        "inlined": frame.inlined,
        "file": known(frame.file),
        "line": (frame.line > 0).then_some(frame.line),
        "dso": known(frame.dso_path),
        "dso_address": format!("{:#x}", frame.address.0),
        "found": match frame.found {
            Found::Sampled => "registers",
            Found::Cfi => "cfi",
            Found::Signal => "signal",
            Found::FramePointer => "frame-pointer",
            Found::Stitched => "stitched",
            Found::Scan => "scan",
        },
        "trust": trust.name(),
    })
}
