//! Lines of calls with their stacks.

use std::io::{self, Write};

use anyhow::Result;
use plumb_analyze::{CallStacks, Filter, Kind, View, ViewFrame};
use plumb_documents::json;
use plumb_documents::trace::{CallFrame, TracedCall};
use plumb_profile::Profile;
use plumb_syscalls::SystemCall;

use crate::terminal::printable;

/// A call, in the form in which it is printed.
pub(super) enum CallLine {
    Text(String),
    Json(Box<TracedCall>),
}

impl CallLine {
    /// Writes the line.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            CallLine::Text(text) => out.write_all(text.as_bytes()),
            CallLine::Json(call) => json::write(call, out),
        }
    }
}

/// A line waiting for its stack.
pub(super) struct Held {
    line: CallLine,
    tid: u32,
    begin_ns: u64,
    end_ns: u64,
}

impl Held {
    /// The line of a call.
    pub fn new(call: &SystemCall<'_>, line: CallLine) -> Self {
        Self { line, tid: call.tid, begin_ns: call.begin_ns, end_ns: call.end_ns }
    }
}

/// Writes the lines with their stacks.
pub(super) fn write(held: &mut [Held], profile: &Profile, out: &mut impl Write) -> Result<()> {
    let view = View::new(profile, &Filter::default());
    let mut stacks = CallStacks::new(&view);
    for call in held {
        let found = stacks.next_call(call.tid, call.begin_ns, call.end_ns);
        let frames = found.into_iter().flat_map(|node| view.stack(node));
        let frames = frames.filter(|frame| frame.kind != Kind::Kernel);
        match &mut call.line {
            CallLine::Json(call) => {
                call.stack = Some(frames.map(CallFrame::new).collect());
                json::write(call, &mut *out)?;
            }
            CallLine::Text(text) => {
                out.write_all(text.as_bytes())?;
                write_frames(frames, out)?;
            }
        }
    }
    Ok(())
}

fn write_frames<'a>(frames: impl Iterator<Item = &'a ViewFrame<'a>>, out: &mut impl Write) -> Result<()> {
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
