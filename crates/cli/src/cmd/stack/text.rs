//! Stacks as text.

use std::io::Write;

use anyhow::Result;
use plumb_analyze::{Kind, ViewFrame};
use plumb_interpreters::{Merged, ScriptFrame};
use plumb_profile::{Found, Truncation};
use plumb_snapshot::{Goroutines, Snapshot, StoppedProcess, StoppedThread};

use super::{Stacks, state_text};
use crate::terminal::{Output, printable};

/// Writes all processes that could be inspected.
pub fn write(snapshot: &Snapshot, stacks: &Stacks<'_>, out: &mut Output<'_>) -> Result<()> {
    let mut first = true;
    for (pid, process) in &snapshot.processes {
        let Ok(process) = process else { continue };
        if !std::mem::take(&mut first) {
            writeln!(out)?;
        }
        head(*pid, process, out)?;
        for thread in &process.threads {
            write_thread(process, thread, stacks, out)?;
        }
        match &process.goroutines {
            Some(Ok(goroutines)) => write_goroutines(goroutines, stacks, out)?,
            Some(Err(error)) => writeln!(out, "\nGoroutines that no thread runs are not known: {error}")?,
            None => {}
        }
    }
    out.flush()?;
    Ok(())
}

fn head(pid: u32, process: &StoppedProcess, out: &mut Output<'_>) -> Result<()> {
    let count = process.threads.len();
    let threads = if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
    let executable = match &*process.executable {
        "" => "no executable".into(),
        path => printable(path),
    };
    let held = process.held.as_secs_f64() * 1e3;
    let interpreter =
        process.interpreter.as_ref().map(|found| format!(", {}", found.name())).unwrap_or_default();
    writeln!(out, "Process {pid}: {executable}{interpreter}, {threads}, held for {held:.1} ms")?;
    Ok(())
}

fn write_thread(
    process: &StoppedProcess,
    thread: &StoppedThread,
    stacks: &Stacks<'_>,
    out: &mut Output<'_>,
) -> Result<()> {
    writeln!(out, "\nThread {} ({}), {}", thread.tid, printable(&thread.name), state_text(thread.state))?;
    for place in &thread.kernel {
        writeln!(out, "  kernel               {}", printable(place))?;
    }
    if let Err(why) = thread.sample {
        writeln!(out, "  no stack: {}", why.text())?;
    }
    if let Err(error) = &thread.script {
        writeln!(out, "  functions of the program are not known: {error}")?;
    }
    for (number, frame) in stacks.of(process, thread).into_iter().enumerate() {
        match frame {
            Merged::Native((address, frame)) => writeln!(out, "{}", line(number, address, frame))?,
            Merged::Script(frame) => writeln!(out, "{}", script_line(number, frame))?,
        }
    }
    Ok(())
}

/// Writes the groups, those of the runtime itself last.
fn write_goroutines(goroutines: &Goroutines, stacks: &Stacks<'_>, out: &mut Output<'_>) -> Result<()> {
    let mut groups: Vec<_> =
        goroutines.groups.iter().map(|group| (group, stacks.native(group.sample))).collect();
    groups.sort_by_key(|(_, frames)| is_of_runtime(frames));
    for (group, frames) in groups {
        let state =
            if group.state.is_empty() { String::new() } else { format!(", {}", printable(&group.state)) };
        writeln!(out, "\n{}{state}", numbered(&group.ids))?;
        for (number, (address, frame)) in frames.into_iter().enumerate() {
            writeln!(out, "{}", line(number, address, frame))?;
        }
    }
    if !goroutines.are_all {
        writeln!(out, "\nThere are more goroutines than were read: the process is not held for longer")?;
    }
    Ok(())
}

/// The goroutines of a group by their numbers, as many as fit on a line.
fn numbered(ids: &[u64]) -> String {
    const MOST: usize = 8;
    let first: Vec<String> = ids.iter().take(MOST).map(u64::to_string).collect();
    let rest = if ids.len() > MOST { ", ..." } else { "" };
    match ids.len() {
        1 => format!("Goroutine {}", first.concat()),
        count => format!("{count} goroutines ({}{rest})", first.join(", ")),
    }
}

/// Whether a function of Go's runtime was started as a goroutine, other than the one that calls `main`: Go's own traces leave these out, too
/// (`isSystemGoroutine` in src/runtime/traceback.go).
fn is_of_runtime(frames: &[(u64, &ViewFrame<'_>)]) -> bool {
    let started =
        frames.iter().rev().map(|(_, frame)| &*frame.name).find(|name| !name.starts_with("runtime.goexit"));
    started.is_some_and(|name| name.starts_with("runtime.") && name != "runtime.main")
}

fn line(number: usize, address: u64, frame: &ViewFrame<'_>) -> String {
    let dso = printable(frame.dso_path);
    if frame.kind == Kind::Marker {
        let blamed = if dso.is_empty() { String::new() } else { format!(" ({dso})") };
        let remedy = match frame.cut {
            Some(Truncation::ProbedReturn) => {
                "; as root, with BPF programs, plumb stack asks the kernel for it"
            }
            _ => "",
        };
        return format!("  the stack ends here: {}{blamed}{remedy}", frame.cut.map_or("", |cut| cut.text()));
    }
    let place = if frame.inlined { " ".repeat(18) } else { format!("{address:#018x}") };
    let name = if frame.named { printable(&frame.name) } else { "??".into() };
    let mut line = format!("  #{number:<3} {place} {name}");
    if frame.inlined {
        line += " (inlined)";
    }
    if frame.line > 0 {
        line += &format!(" at {}:{}", printable(frame.file), frame.line);
    }
    let dso = if dso.is_empty() { "not mapped".into() } else { dso };
    if !frame.inlined {
        line += &format!(" ({dso})");
        line += remark(frame.found);
    }
    line
}

fn script_line(number: usize, frame: &ScriptFrame) -> String {
    let line = if frame.line > 0 { format!(":{}", frame.line) } else { String::new() };
    format!("  #{number:<3} {:18} {} at {}{line}", "", printable(&frame.function), printable(&frame.file))
}

/// The method that found the frame, unless it was the file's unwind information.
fn remark(found: Found) -> &'static str {
    match found {
        Found::Sampled | Found::Cfi => "",
        Found::Signal => " [interrupted by a signal]",
        Found::FramePointer => " [by frame pointer]",
        Found::Stitched => " [seen earlier]",
        Found::Scan => " [guessed from the stack's words]",
    }
}
