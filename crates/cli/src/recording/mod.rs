//! Recording: from a typed request to a profile in memory, for every command that records.
//!
//! Invariant: a recording depends only on the [`RecordRequest`]; nothing here reads a command line. The profile is passed on in
//! memory. Only a recording that outgrows `--max-memory` goes through a file, its journal, because its samples don't fit otherwise.
//!
//! Elsewhere: sampling (capture-perf), names (symbolize), the file's format (formats), printed reports (`cmd`).

pub mod capture;
mod event;
mod keeping;
mod live;
pub mod memory;
pub mod notice;
pub mod off_cpu;
pub mod output;
mod own_probes;
mod progress;
mod request;
mod second_look;
mod session;
mod standstill;
mod symbols;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use plumb_capture_api::{TargetObserver, UnwindFallbackStats};
use plumb_capture_perf::{Recorded, Setup};
use plumb_process::usage::CpuTime;
use plumb_profile::Profile;
use plumb_target::{Descendants, End, Running, Target};

use crate::exit::Exit;
use crate::newfile::Destination;
use crate::render::precision::part_of;
use crate::stack_quality::StackCounts;
use crate::terminal::say;
use keeping::Keeping;
use output::{Output, Written};
use progress::ProgressLine;
use session::Session;
use symbols::SymbolLookup;

pub use live::{LiveSession, WindowSum};
pub use request::{RecordRequest, prints_beside};
pub use second_look::SecondLook;
pub use session::Step;

/// Longest sleep of the recorder: files must be opened before the target deletes them.
const STEP: Duration = Duration::from_millis(100);

/// Help on the effect of signals, for all commands that run one.
pub const CTRL_C: &str = "Ctrl-C goes to the command: plumb waits until the command ends, keeps what was measured, and exits \
                          with the command's status. The third Ctrl-C kills the command.";

/// The place where a recording is kept.
#[derive(Clone, Copy)]
pub enum Keep<'a> {
    /// In memory only, for the calling command.
    InMemory,
    /// In a file, or whatever its path refers to.
    In(&'a Output),
}

impl<'a> Keep<'a> {
    fn output(self) -> Option<&'a Output> {
        match self {
            Keep::InMemory => None,
            Keep::In(output) => Some(output),
        }
    }
}

/// A finished recording.
pub struct Recording {
    /// Samples with names. For a recording in parts these are the last ones: see [`Recording::into_profile`].
    pub profile: Profile,
    /// The setup of the recording.
    pub setup: Setup,
    /// Counts of samples that are in the journal and not in `profile`.
    pub earlier: StackCounts,
    /// CPU time of the target, if known.
    pub target_cpu: Option<CpuTime>,
    /// CPU time that plumb used before it looked up names.
    pub recording_cpu: Duration,
    /// Counts of stacks unwound in the kernel and of others, with reasons, if the summary shows them.
    pub unwinding: Option<UnwindFallbackStats>,
    /// Descendants that outlive the command.
    pub left: Descendants,
    /// The file, if any.
    pub written: Option<Written>,
    keeping: Keeping,
}

impl Recording {
    /// The whole profile, as it would be read from the file.
    ///
    /// # Errors
    /// Data that had to leave memory can't be read back.
    pub fn into_profile(self) -> Result<Profile> {
        let mut profile = self.keeping.into_profile(self.profile)?;
        plumb_symbolize::make_readable(&mut profile);
        Ok(profile)
    }
}

/// The end of a recording, and a command that may still run.
pub struct Ending {
    end: Result<Option<End>>,
    running: Option<Running>,
    target: Target,
    /// A warning, if more memory was used than the limit.
    pub exceeded: Option<String>,
}

impl Ending {
    /// Ends a command that outlives its recording because the time is up, and returns plumb's exit status.
    ///
    /// # Errors
    /// The reason why the recording ended early.
    pub fn exit(self) -> Result<Exit> {
        let is_command = matches!(self.target, Target::Command(_));
        Ok(match self.end? {
            None => {
                self.running.into_iter().for_each(|running| end(running, &self.target));
                Exit::Success
            }
            Some(end) => {
                if self.running.is_some() {
                    notice::say_goes_on(&self.target);
                }
                Exit::of_end(end, is_command)
            }
        })
    }
}

/// The exit status of a command that ended its recording by ending.
fn exit_status(target: &Target, end: Option<End>) -> Option<u8> {
    match (target, end?) {
        (Target::Command(_), End::Exited(status)) => Some(Exit::of_status(status).code()),
        _ => None,
    }
}

/// Ends a command that outlives its recording.
pub fn end(running: Running, target: &Target) {
    notice::say_refused(target, running.end(|notice| notice::say_of(target, notice)).ok());
}

/// Records. `observer` observes the target during the recording. If the recording could not be written, it is an error, which must be reported; its
/// end is returned even so.
///
/// # Errors
/// Nothing can be recorded, or the command can't be started: [`Exit::of_error`] has the status.
pub fn record(
    request: &RecordRequest,
    keep: Keep<'_>,
    mut observer: Option<&mut dyn TargetObserver>,
) -> Result<(Result<Recording>, Ending)> {
    let also = observer.as_mut().map(|observer| &mut **observer as &mut dyn TargetObserver);
    let (mut session, notes) = Session::start(request, also)?;
    notes.iter().chain(&standstill::notes(&request.target)).for_each(|note| say!("{note}"));
    let mut looks = Looks {
        progress: ProgressLine::new(request),
        symbols: SymbolLookup::begin(request.symbols()),
        keeping: Keeping::begin(keep.output(), request.max_memory, request.command.clone()),
    };
    if !matches!(request.target, Target::Command(_)) && request.duration.is_none() {
        let waits = matches!(request.target, Target::Awaited(_));
        let what = if waits { "waiting for it to start" } else { "recording" };
        looks.progress.note(&format!("{what}; Ctrl-C ends it"));
    }
    let end = watch(&mut session, &mut looks);
    let exit_status = exit_status(&request.target, end.as_ref().ok().copied().flatten());
    observer.map_or(Ok(()), TargetObserver::end).context("the observer of the target failed")?;
    let (mut recorded, exceeded) = session.stop();
    looks.progress.clear();
    looks.progress.has_terminal();
    // Looking up names reuses the recorder's memory.
    plumb_capture_perf::trim_memory();
    recorded.profile.meta.exit_status = exit_status;
    let running = recorded.running.take();
    let recording = finish(request, recorded, looks, keep);
    let running = running.filter(|_| recording.is_ok());
    Ok((recording, Ending { end, running, target: request.target.clone(), exceeded }))
}

/// Records for a command that shows the profile. `file`: also write the recording there. Returns the command's exit status.
///
/// # Errors
/// As [`record`]; `file` can't be a file, or could not be written.
pub fn record_profile(
    request: &RecordRequest,
    file: Option<&std::path::Path>,
    observer: Option<&mut dyn TargetObserver>,
) -> Result<(Profile, Exit)> {
    let output = match file {
        Some(path) if !matches!(Destination::of(path)?, Destination::File(_)) => {
            bail!("{}: the recording is kept in a file; name one", path.display())
        }
        Some(path) => Some(Output::check(path)?),
        None => None,
    };
    let (recording, ending) = record(request, output.as_ref().map_or(Keep::InMemory, Keep::In), observer)?;
    let recording = match recording {
        Ok(recording) => recording,
        Err(error) => {
            ending.exit()?;
            return Err(error);
        }
    };
    notice::say_left(Some(recording.left.clone()));
    if let Some(written) = recording.written.as_ref().filter(|written| written.is_elsewhere()) {
        say!("{}", written.text());
    }
    let exit = ending.exit()?;
    Ok((recording.into_profile()?, exit))
}

/// Fewer than 1/OWN_PROBES of the samples in plumb's own probes are not reported.
const OWN_PROBES: usize = 100;

/// Periodic work during a recording.
struct Looks {
    progress: ProgressLine,
    symbols: SymbolLookup,
    keeping: Keeping,
}

/// Records until an end; `None`: the time is up.
fn watch(session: &mut Session, looks: &mut Looks) -> Result<Option<End>> {
    // Processes that run already may end before the first step does.
    looks.symbols.look(&mut session.recorder);
    loop {
        match session.step(STEP)? {
            Step::TimeUp => return Ok(None),
            Step::Ended(end) => return Ok(Some(end)),
            Step::GoesOn => {}
        }
        if let Some(notice) = session.recorder.notice() {
            looks.progress.clear();
            notice::say_of(session.target(), notice);
        }
        if session.recorder.is_waiting() {
            continue;
        }
        looks.progress.show(session.recorder.elapsed(), session.recorder.statistics());
        looks.symbols.look(&mut session.recorder);
        let is_scarce = session.look_at_memory();
        looks.keeping.look(&mut session.recorder, is_scarce);
    }
}

/// Looks up names, and writes the recording to its destination.
fn finish(request: &RecordRequest, recorded: Recorded, looks: Looks, keep: Keep<'_>) -> Result<Recording> {
    let Looks { mut progress, mut symbols, mut keeping } = looks;
    let Recorded { mut profile, target_cpu, setup, left, handed_over, unmeasured, vanished, .. } = recorded;
    profile.meta.warnings.extend(unmeasured.iter().flat_map(off_cpu::left_out));
    profile.meta.recorder = RecordRequest::RECORDER.into();
    profile.meta.command.clone_from(&request.command);
    profile.meta.by_kernel = handed_over.is_some();
    profile.meta.warnings.extend(keeping.failure());
    let own = || plumb_process::usage::own_cpu_time().total();
    let recording_cpu = own().saturating_sub(symbols.early());
    symbols.close(&profile, &vanished);
    // Most names are found by now, except those of large files met last, or from a server. If they take longer, the recording
    // is first written without them: it remains if the look-up is interrupted, or the disk becomes full.
    let output = keep.output();
    let early = output.filter(|output| !symbols.are_found() && output.is_replaceable());
    let mut written = early.map(|output| keeping.write(&profile, output)).transpose()?;
    symbols.store(&mut profile, &mut progress);
    let in_probes = own_probes::leave_out(&mut profile);
    if in_probes * OWN_PROBES > profile.samples.len() {
        let share = part_of(in_probes as u64, profile.samples.len() as u64);
        let text =
            format!("{share} of samples were in plumb's own probes: they are shown where these are attached");
        profile.meta.warnings.push(text);
    }
    progress.clear();
    // Writing makes another copy of the tables: the memory of the look-up is free by now.
    plumb_capture_perf::trim_memory();
    if request.off_cpu_min_ns.is_some() {
        plumb_symbolize::name_reasons(&mut profile);
    }
    profile.meta.recorder_cpu_ns = u64::try_from(own().as_nanos()).ok();
    match &mut written {
        None => written = output.map(|output| keeping.write(&profile, output)).transpose()?,
        Some(written) => {
            if let Err(error) = keeping.replace(&profile, written) {
                say!("{error:#}\nplumb: the recording is there, but without symbols");
            }
        }
    }
    let earlier = keeping.end().walked(handed_over.is_some(), request.sampling.scan);
    Ok(Recording {
        profile,
        setup,
        earlier,
        target_cpu,
        recording_cpu,
        unwinding: handed_over
            .filter(|of| request.capture == capture::Capture::Bpf || capture::is_noteworthy(of)),
        left,
        written,
        keeping,
    })
}
