//! The way of a recording: sampling, then names, then the profile.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::time::Duration;

use plumb_analyze::part_of;
use plumb_capture_api::{TargetObserver, UnwindFallbackStats};
use plumb_capture_perf::{Recorded, Setup};
use plumb_process::usage::CpuTime;
use plumb_profile::{DsoId, Profile};
use plumb_stack_quality::StackCounts;
use plumb_target::{Descendants, End, Running, Target, exit_code};

use crate::capture::{self, Capture};
use crate::error::RecordError;
use crate::journal::RecordingJournal;
use crate::measure::MeasureRequest;
use crate::notices::{Notices, Progress};
use crate::request::RecordRequest;
use crate::session::{Session, Step};
use crate::symbols::SymbolLookup;
use crate::{measure, own_probes, standstill};

/// Longest sleep of the recorder: files must be opened before the target deletes them.
const STEP: Duration = Duration::from_millis(100);
/// Fewer than 1/OWN_PROBES of the samples in plumb's own probes are not reported.
const OWN_PROBES: usize = 100;

/// The end of a recording, and a command that may still run.
pub struct Ending {
    /// Why the recording ended; `None`: its time is up.
    pub end: Result<Option<End>, RecordError>,
    /// A command that still runs.
    pub running: Option<Running>,
    /// A warning, if more memory was used than the limit.
    pub exceeded: Option<String>,
}

/// A recording whose samples may lack names. [`Sampled::named`] looks them up.
pub struct Sampled {
    recording: Recording,
    symbols: SymbolLookup,
    /// Files that no path leads to. They stay open while names are looked up in them.
    vanished: Vec<(DsoId, File)>,
    has_reasons: bool,
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
    /// Counts of stacks unwound in the kernel and of others, with reasons, if a summary should show them.
    pub unwinding: Option<UnwindFallbackStats>,
    /// Descendants that outlive the command.
    pub left: Descendants,
    journal: RecordingJournal,
}

/// Periodic work during a recording.
pub(crate) struct Looks {
    pub symbols: SymbolLookup,
    journal: RecordingJournal,
}

impl Looks {
    pub fn begin(request: &RecordRequest, file: Option<&Path>, notices: &mut dyn Notices) -> Self {
        let (most, words) = (request.max_memory, request.command.clone());
        Self {
            symbols: SymbolLookup::begin(request.symbols()),
            journal: RecordingJournal::begin(file, most, words, notices),
        }
    }
}

/// Samples until the target ends, the time is up, or a signal comes. `file`: where the recording will be written; its journal is next to it. `observer`
/// observes the target meanwhile.
///
/// # Errors
/// Nothing can be recorded, or the command can't be started.
pub fn sample(
    request: &RecordRequest,
    file: Option<&Path>,
    mut observer: Option<&mut dyn TargetObserver>,
    notices: &mut dyn Notices,
) -> Result<(Sampled, Ending), RecordError> {
    let also = observer.as_mut().map(|observer| &mut **observer as &mut dyn TargetObserver);
    let (mut session, note) = Session::start(request, also)?;
    note.iter().chain(&standstill::notes(&request.target)).for_each(|note| notices.message(note));
    let mut looks = Looks::begin(request, file, notices);
    if !matches!(request.target, Target::Command(_)) && request.duration.is_none() {
        notices.progress(Progress::UntilSignal { waits: matches!(request.target, Target::Awaited(_)) });
    }
    let end = watch(&mut session, &mut looks, notices);
    observer.map_or(Ok(()), TargetObserver::end).map_err(RecordError::Observer)?;
    let (mut recorded, exceeded) = session.stop();
    notices.progress(Progress::Sampled);
    // Looking up names reuses the recorder's memory.
    plumb_capture_perf::trim_memory();
    recorded.profile.meta.exit_status = exit_status(&request.target, end.as_ref().ok().copied().flatten());
    let running = recorded.running.take();
    Ok((Sampled::new(request, recorded, looks), Ending { end, running, exceeded }))
}

/// Records until the target ends, the time is up, or a signal comes. A command that still runs is ended.
///
/// # Errors
/// Nothing can be recorded, the command can't be started, or a long recording can't be kept on disk.
pub fn record(request: &RecordRequest, notices: &mut dyn Notices) -> Result<Profile, RecordError> {
    let (sampled, ending) = sample(request, None, None, notices)?;
    let profile = sampled.named(notices).into_profile()?;
    if let Some(running) = ending.running {
        running.end(|notice| notices.of_target(&request.target, notice)).ok();
    }
    ending.end?;
    Ok(profile)
}

/// Samples until an end; `None`: the time is up.
fn watch(
    session: &mut Session,
    looks: &mut Looks,
    notices: &mut dyn Notices,
) -> Result<Option<End>, RecordError> {
    // Processes that run already may end before the first step does.
    looks.symbols.look(&mut session.recorder);
    loop {
        match session.step(STEP)? {
            Step::TimeUp => return Ok(None),
            Step::Ended(end) => return Ok(Some(end)),
            Step::GoesOn => {}
        }
        if let Some(notice) = session.recorder.target_mut().notice() {
            notices.of_target(session.target(), notice);
        }
        if session.recorder.target().is_waiting() {
            continue;
        }
        let (elapsed, statistics) = (session.recorder.elapsed(), session.recorder.samples().statistics());
        notices.progress(Progress::Sampling { elapsed, statistics });
        looks.symbols.look(&mut session.recorder);
        let is_scarce = session.look_at_memory();
        looks.journal.look(&mut session.recorder, is_scarce, notices);
    }
}

/// The exit status of a command that ended its recording by ending, as a shell reports it.
fn exit_status(target: &Target, end: Option<End>) -> Option<u8> {
    match (target, end?) {
        (Target::Command(_), End::Exited(status)) => Some(exit_code(status)),
        _ => None,
    }
}

/// CPU time of this process so far.
fn own_cpu() -> Duration {
    plumb_process::usage::own_cpu_time().total()
}

impl Sampled {
    pub(crate) fn new(request: &RecordRequest, recorded: Recorded, looks: Looks) -> Self {
        let Looks { mut symbols, mut journal } = looks;
        let Recorded { mut profile, target_cpu, setup, left, handed_over, unmeasured, vanished, .. } =
            recorded;
        profile.meta.warnings.extend(unmeasured.iter().flat_map(measure::left_out));
        profile.meta.recorder = RecordRequest::RECORDER.into();
        profile.meta.command.clone_from(&request.command);
        profile.meta.by_kernel = handed_over.is_some();
        profile.meta.warnings.extend(journal.failure());
        let recording_cpu = own_cpu().saturating_sub(symbols.early());
        symbols.close(&profile, &vanished);
        let earlier = journal.earlier().walked(handed_over.is_some(), request.sampling.scan);
        let unwinding =
            handed_over.filter(|of| request.capture == Capture::Bpf || capture::is_noteworthy(of));
        let recording =
            Recording { profile, setup, earlier, target_cpu, recording_cpu, unwinding, left, journal };
        Self {
            recording,
            symbols,
            vanished,
            has_reasons: request.measure.is_some_and(MeasureRequest::has_reasons),
        }
    }

    /// Whether all names are found, or will be within a tenth of a second. Those of large files that were met last, or of files from a server, may
    /// take longer.
    pub fn has_names(&mut self) -> bool {
        self.symbols.are_found()
    }

    /// Writes the recording as it is: what is written remains if looking up names is interrupted, or if the disk becomes full.
    ///
    /// # Errors
    /// As [`Recording::write`].
    pub fn write(&mut self, out: &mut (impl Write + Seek + Send)) -> Result<(), RecordError> {
        self.recording.write(out)
    }

    /// Waits for the names of functions, and puts them into the profile.
    pub fn named(self, notices: &mut dyn Notices) -> Recording {
        let Self { mut recording, symbols, vanished, has_reasons } = self;
        let profile = &mut recording.profile;
        symbols.store(profile, notices);
        drop(vanished);
        let in_probes = own_probes::leave_out(profile);
        if in_probes * OWN_PROBES > profile.samples.len() {
            let share = part_of(in_probes as u64, profile.samples.len() as u64);
            profile.meta.warnings.push(format!(
                "{share} of samples were in plumb's own probes: they are shown where these are attached"
            ));
        }
        notices.progress(Progress::Named);
        // Writing makes another copy of the tables: the memory of the look-up is free by now.
        plumb_capture_perf::trim_memory();
        if has_reasons {
            plumb_symbolize::name_reasons(profile);
        }
        profile.meta.recorder_cpu_ns = u64::try_from(own_cpu().as_nanos()).ok();
        recording
    }
}

impl Recording {
    /// Writes the whole recording. `out` is at its beginning.
    ///
    /// # Errors
    /// `out` rejects it, or earlier parts of it can't be read.
    pub fn write(&mut self, out: &mut (impl Write + Seek + Send)) -> Result<(), RecordError> {
        self.journal.write(&self.profile, out)
    }

    /// Removes the journal's file, once the recording is written.
    pub fn remove_journal(&mut self) {
        self.journal.remove();
    }

    /// The whole profile, as it would be read from the file.
    ///
    /// # Errors
    /// Data that had to leave memory can't be read back.
    pub fn into_profile(self) -> Result<Profile, RecordError> {
        let mut profile = self.journal.into_profile(self.profile)?;
        plumb_symbolize::make_readable(&mut profile);
        Ok(profile)
    }
}
