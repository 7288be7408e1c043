//! `plumb stack`: prints the current stacks of running processes, as pstack does.
//!
//! Elsewhere: stopping threads and unwinding (capture-perf), names (symbolize).

mod json;
mod text;

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use plumb_analyze::{Filter, View, ViewFrame, ViewSample};
use plumb_interpreters::{Merged, language_versions};
use plumb_process::path_of_open;
use plumb_profile::{DsoId, Found, Mapping, ProcessId, Profile};
use plumb_snapshot::{ReplacedReturns, Snapshot, StoppedProcess, StoppedThread};

use crate::args::native_help;
use crate::examples;
use crate::exit::Exit;
use crate::render::perf_script::run_time;
use crate::terminal::{Output, finish, say};

/// Arguments of `plumb stack`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::STACK)]
pub struct Args {
    /// Processes to inspect
    #[arg(short = 'p', long, alias = "pid", value_name = "PID,...", value_delimiter = ',')]
    attach: Vec<u32>,
    /// Processes to inspect, as after -p
    #[arg(value_name = "PID", required_unless_present = "attach")]
    pids: Vec<u32>,
    /// Show the interpreter's own frames instead of the program's functions
    #[arg(long, help = native_help(), long_help = format!("{}\n\nFunctions are shown for {}.", native_help(), language_versions()))]
    native: bool,
    /// Guess callers by scanning the stack where unwind information is missing
    ///
    /// Without --scan, only callers that a call instruction confirms are shown. Guessed frames are marked: frames before them may be
    /// missing, and some may have returned already.
    #[arg(long)]
    scan: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Do not look up source lines and inlined functions
    #[arg(long)]
    no_lines: bool,
}

/// Runs `plumb stack`.
pub fn run(args: Args) -> Result<Exit> {
    let options = plumb_snapshot::SnapshotOptions {
        scan: args.scan,
        script: !args.native,
        returns: Some(replaced_returns),
    };
    let mut pids: Vec<u32> = Vec::new();
    for pid in args.attach.into_iter().chain(args.pids) {
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    let mut snapshot = Snapshot::take(&pids, options);
    let images = snapshot.vanished.iter().map(|(dso, file)| (*dso, vec![path_of_open(file)])).collect();
    let options = plumb_symbolize::Options { lines: !args.no_lines, images, ..Default::default() };
    plumb_symbolize::symbolize(&mut snapshot.profile, &options, &mut |_| {});
    let stacks = Stacks::new(&snapshot.profile);
    let mut out = Output::stdout();
    let written = if args.json {
        json::write(&snapshot, &stacks, &mut out)
    } else {
        text::write(&snapshot, &stacks, &mut out)
    };
    let code = finish(written)?;
    let mut failed = false;
    for refusal in snapshot.processes.iter().filter_map(|(_, outcome)| outcome.as_ref().err()) {
        say!("{refusal}");
        failed = true;
    }
    Ok(if failed { Exit::Failure } else { code })
}

/// Returns a reader of return addresses that return probes have replaced; `None` where BPF programs can't be loaded.
fn replaced_returns() -> Option<ReplacedReturns> {
    let returns = plumb_capture_bpf::ReplacedReturns::load().ok()?;
    Some(Arc::new(move |tid| returns.of(tid).unwrap_or_default()))
}

/// A native frame, or a call inlined in one, and its address in the process.
type Native<'t, 'p> = (u64, &'t ViewFrame<'p>);

/// The named frames of a snapshot.
struct Stacks<'p> {
    view: View<'p>,
    samples: Vec<ViewSample>,
    mappings: HashMap<(ProcessId, DsoId), Vec<Mapping>>,
}

impl<'p> Stacks<'p> {
    fn new(profile: &'p Profile) -> Self {
        let mut mappings: HashMap<_, Vec<Mapping>> = HashMap::new();
        for &mapping in &profile.mappings {
            mappings.entry((mapping.process, mapping.dso)).or_default().push(mapping);
        }
        let view = View::new(profile, &Filter::default());
        Self { samples: view.samples().collect(), view, mappings }
    }

    /// The frames of a thread, innermost first. Empty if none is known.
    fn of<'t>(
        &'t self,
        process: &StoppedProcess,
        thread: &'t StoppedThread,
    ) -> Vec<Merged<'t, Native<'t, 'p>>> {
        let mut natives = Vec::new();
        let mut inlined = Vec::new();
        for frame in thread.sample.iter().flat_map(|&sample| self.native(sample)) {
            // Inlined calls precede the frame that they are in.
            inlined.push(frame);
            if !frame.1.inlined {
                natives.push(std::mem::take(&mut inlined));
            }
        }
        natives.push(inlined);
        let (Some(interpreter), Ok(script)) = (&process.interpreter, &thread.script) else {
            return natives.into_iter().flatten().map(Merged::Native).collect();
        };
        let name = interpreter.language().native_loop;
        // By name where the stack does not mark them: parts of the loop that the compiler moved may have no mark.
        let is_loop = |(index, frames): &(usize, Vec<Native<'_, '_>>)| {
            let rest = frames.last().and_then(|(_, frame)| frame.name.strip_prefix(name?));
            match thread.loops.is_empty() {
                true => rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
                false => thread.loops.contains(index),
            }
        };
        let mut merged = Vec::new();
        for frames in plumb_interpreters::merge(natives.into_iter().enumerate(), is_loop, script) {
            match frames {
                Merged::Native((_, frames)) => merged.extend(frames.into_iter().map(Merged::Native)),
                Merged::Script(frame) => merged.push(Merged::Script(frame)),
            }
        }
        merged
    }

    /// The native frames of a sample, innermost first.
    fn native(&self, sample: usize) -> Vec<Native<'_, 'p>> {
        let Some(sample) = self.samples.get(sample) else { return Vec::new() };
        let process = self.view.profile().threads[sample.sample.thread].process;
        let address =
            |frame: &ViewFrame<'_>| match frame.dso.and_then(|dso| self.mappings.get(&(process, dso))) {
                Some(mappings) => run_time(frame.address.0, mappings),
                None => frame.address.0,
            };
        self.view.stack(sample.node).map(|frame| (address(frame), frame)).collect()
    }
}

/// Confidence in a frame: never more than in the frames before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// Callers before it may be missing, or it may have returned already.
    Guessed,
    /// By a convention that the code may not follow.
    Assumed,
    /// According to unwind information of the file, or the kernel.
    Stated,
    /// Certain.
    Certain,
}

impl Trust {
    /// The confidence in a frame found by this method, if the frames before it are certain.
    fn of(found: Found) -> Trust {
        match found {
            Found::Sampled => Trust::Certain,
            Found::Cfi | Found::Signal => Trust::Stated,
            Found::FramePointer | Found::Stitched => Trust::Assumed,
            Found::Scan => Trust::Guessed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Trust::Guessed => "guessed",
            Trust::Assumed => "assumed",
            Trust::Stated => "stated",
            Trust::Certain => "certain",
        }
    }
}

/// The meaning of a process state's letter.
fn state_text(state: Option<char>) -> &'static str {
    match state {
        Some('R') => "running",
        Some('S') => "sleeping",
        Some('D') => "waiting uninterruptibly",
        Some('T') => "stopped by a signal",
        Some('t') => "stopped by a debugger",
        Some('Z' | 'X') => "ended",
        Some('I') => "idle",
        _ => "state not known",
    }
}
