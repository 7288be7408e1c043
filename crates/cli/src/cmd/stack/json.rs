//! Stacks for programs. Field names are stable.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Kind, ViewFrame};
use plumb_documents::stopped::{
    GoroutineRow, StoppedDocument, StoppedEntry, StoppedFrame, StoppedProcessRow, StoppedThreadRow,
};
use plumb_interpreters::{Merged, ScriptFrame};
use plumb_profile::Found;
use plumb_snapshot::{GoroutineGroup, Snapshot, StoppedProcess, StoppedThread};

use super::{Native, Stacks, Trust, state_text};
use crate::terminal::Output;

/// Writes one JSON object with all processes, those that could not be looked at too.
pub fn write(snapshot: &Snapshot, stacks: &Stacks<'_>, out: &mut Output<'_>) -> Result<()> {
    let processes = snapshot.processes.iter().map(|(pid, outcome)| match outcome {
        Ok(found) => StoppedEntry::Found(process(*pid, found, stacks)),
        Err(refusal) => StoppedEntry::Refused { pid: *pid, error: refusal.to_string() },
    });
    let document = StoppedDocument::new(processes.collect());
    plumb_documents::json::write(&document, &mut *out)?;
    Ok(out.flush()?)
}

fn process<'s>(pid: u32, process: &'s StoppedProcess, stacks: &'s Stacks<'_>) -> StoppedProcessRow<'s> {
    let goroutines = process.goroutines.as_ref();
    let known = goroutines.and_then(|found| found.as_ref().ok());
    StoppedProcessRow {
        pid,
        executable: &process.executable,
        interpreter: process.interpreter.as_ref().map(|found| found.name()),
        held_ns: u64::try_from(process.held.as_nanos()).ok(),
        threads: process.threads.iter().map(|found| thread(process, found, stacks)).collect(),
        goroutines: known.map(|found| found.groups.iter().map(|group| goroutine(group, stacks)).collect()),
        goroutines_are_all: known.map(|found| found.are_all),
        goroutines_error: goroutines.and_then(|found| found.as_ref().err()).map(ToString::to_string),
    }
}

fn thread<'s>(
    process: &'s StoppedProcess,
    thread: &'s StoppedThread,
    stacks: &'s Stacks<'_>,
) -> StoppedThreadRow<'s> {
    let rows = rows(stacks.of(process, thread));
    StoppedThreadRow {
        tid: thread.tid,
        name: &thread.name,
        state: thread.state,
        state_text: state_text(thread.state),
        kernel: &thread.kernel,
        complete: thread.sample.is_ok() && rows.marker.is_none(),
        cut: rows.cut(),
        cut_file: rows.cut_file(),
        script_error: thread.script.as_ref().err().map(ToString::to_string),
        no_stack: thread.sample.err().map(|why| why.name()),
        frames: rows.frames,
    }
}

fn goroutine<'s>(group: &'s GoroutineGroup, stacks: &'s Stacks<'_>) -> GoroutineRow<'s> {
    let rows = rows(stacks.native(group.sample).into_iter().map(Merged::Native));
    GoroutineRow {
        ids: &group.ids,
        state: &group.state,
        complete: rows.marker.is_none(),
        cut: rows.cut(),
        cut_file: rows.cut_file(),
        frames: rows.frames,
    }
}

/// The rows of a stack's frames, and the marker where it is truncated.
struct Rows<'s, 'p> {
    frames: Vec<StoppedFrame<'s>>,
    marker: Option<&'s ViewFrame<'p>>,
}

impl<'s> Rows<'s, '_> {
    fn cut(&self) -> Option<&'static str> {
        self.marker.and_then(|frame| frame.cut).map(|cut| cut.name())
    }

    fn cut_file(&self) -> Option<&'s str> {
        self.marker.map(|frame| frame.dso_path).filter(|path| !path.is_empty())
    }
}

fn rows<'s, 'p>(stack: impl IntoIterator<Item = Merged<'s, Native<'s, 'p>>>) -> Rows<'s, 'p> {
    let mut rows = Rows { frames: Vec::new(), marker: None };
    let mut trust = Trust::Certain;
    for found in stack {
        match found {
            Merged::Native((_, found)) if found.kind == Kind::Marker => rows.marker = Some(found),
            Merged::Native((at, found)) => {
                trust = trust.min(Trust::of(found.found));
                rows.frames.push(native_frame(at, found, trust));
            }
            Merged::Script(found) => rows.frames.push(script_frame(found)),
        }
    }
    rows
}

fn script_frame(frame: &ScriptFrame) -> StoppedFrame<'_> {
    StoppedFrame::Script {
        symbol: &frame.function,
        file: &frame.file,
        line: (frame.line > 0).then_some(frame.line),
    }
}

fn native_frame<'s>(address: u64, frame: &'s ViewFrame<'_>, trust: Trust) -> StoppedFrame<'s> {
    let known = |text: &'s str| (!text.is_empty()).then_some(text);
    StoppedFrame::Native {
        address: format!("{address:#x}"),
        symbol: frame.named.then_some(&*frame.name),
        inlined: frame.inlined,
        file: known(frame.file),
        line: (frame.line > 0).then_some(frame.line),
        dso: known(frame.dso_path),
        dso_address: format!("{:#x}", frame.address.0),
        found: match frame.found {
            Found::Sampled => "registers",
            Found::Cfi => "cfi",
            Found::Signal => "signal",
            Found::FramePointer => "frame-pointer",
            Found::Stitched => "stitched",
            Found::Scan => "scan",
        },
        trust: trust.name(),
    }
}
