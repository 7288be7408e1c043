//! A recording without end: its samples are taken out window by window.
//!
//! Invariant: memory holds the current window and the running processes only. [`WindowedRecording::take`] removes the window and everything that only
//! it needed.

use std::collections::HashSet;
use std::fs::File;
use std::time::Duration;

use plumb_capture_api::Unmeasured;
use plumb_capture_perf::{EndedCgroups, Setup, TakenProfile};
use plumb_profile::{BuildId, DsoId, ProcessId, Profile};
use plumb_symbolize::{Options, make_readable, name_reasons};

use crate::error::RecordError;
use crate::measure::MeasureRequest;
use crate::request::RecordRequest;
use crate::session::{Session, Step};

/// Files whose symbolization is left to whoever gets the windows.
#[derive(Clone, Debug, Default)]
pub struct LeftNames {
    /// Files with a build id that the receiver cannot have: their frames are symbolized here.
    pub unsent: HashSet<BuildId>,
    /// Files that the receiver has. A file that no path leads to is symbolized here unless it is one of these: it may be gone when the receiver asks
    /// for it.
    pub sent: HashSet<BuildId>,
}

/// A window that was taken out.
pub struct TakenWindow {
    /// The samples, symbolized.
    pub profile: Profile,
    /// Control groups of the processes that ended in it, if the kernel was asked for them.
    pub cgroups: EndedCgroups,
    /// The processes that go on.
    pub running: HashSet<ProcessId>,
    /// Files that were symbolized here because no path leads to them, although the receiver may have them.
    pub held: Vec<BuildId>,
}

/// The last window, and the counts of all windows.
pub struct EndedWindows {
    /// Samples of the last window, symbolized.
    pub profile: Profile,
    /// Control groups of the processes that ended in it.
    pub cgroups: EndedCgroups,
    /// Samples of all windows.
    pub samples: u64,
    /// Samples that the kernel lost.
    pub lost: u64,
    /// Measured weight that is in no window.
    pub unmeasured: Unmeasured,
}

/// Number of rows in a profile's tables.
#[derive(Clone, Copy, Debug, Default)]
struct Rows {
    frames: usize,
    processes: usize,
}

impl Rows {
    /// New frames and processes that can be inspected within a millisecond.
    const FEW: Rows = Rows { frames: 256, processes: 4 };

    fn are_few_more(self, than: Rows) -> bool {
        self.frames <= than.frames + Self::FEW.frames
            && self.processes <= than.processes + Self::FEW.processes
    }
}

/// A recording whose samples are taken out in windows, with the names found for them.
pub struct WindowedRecording {
    pub(crate) session: Session,
    pub(crate) symbols: plumb_symbolize::Session,
    /// Build ids of files that the receiver has.
    sent: HashSet<BuildId>,
    /// Size of the profile at the last inspection.
    looked: Rows,
    /// Longest wait for the names of a window.
    patience: Duration,
    has_reasons: bool,
}

impl WindowedRecording {
    /// Starts the recording. `patience`: longest wait for the names of a window that is taken out. Also returns messages on the setup.
    ///
    /// # Errors
    /// The kernel or the user's privileges don't allow it, or a command can't be started.
    pub fn start(
        request: &RecordRequest,
        names: Options,
        patience: Duration,
    ) -> Result<(Self, Vec<String>), RecordError> {
        let (session, note) = Session::start(request, None)?;
        let notes = note.into_iter().chain(session.recorder.setup().limits.iter().cloned()).collect();
        let windowed = Self {
            session,
            symbols: plumb_symbolize::Session::begin_live(names),
            sent: HashSet::new(),
            looked: Rows::default(),
            patience,
            has_reasons: request.measure.is_some_and(MeasureRequest::has_reasons),
        };
        Ok((windowed, notes))
    }

    /// The setup of the recording.
    pub fn setup(&self) -> &Setup {
        self.session.recorder.setup()
    }

    /// Changes the sample rate, in samples per second of CPU time.
    ///
    /// # Errors
    /// The kernel rejects it.
    pub fn set_frequency(&mut self, hz: u32) -> Result<(), RecordError> {
        Ok(self.session.recorder.set_frequency(hz)?)
    }

    /// Samples that the kernel has lost so far.
    pub fn lost(&self) -> u64 {
        self.session.recorder.lost()
    }

    /// Measured weight so far that is in no window.
    pub fn unmeasured(&mut self) -> Unmeasured {
        self.session.recorder.samples_mut().unmeasured().unwrap_or_default()
    }

    /// Sleeps until there is work or `timeout` has passed, and does the work.
    ///
    /// # Errors
    /// The recording can't go on.
    pub fn step(&mut self, timeout: Duration) -> Result<Step, RecordError> {
        self.session.step(timeout)
    }

    /// Leaves the symbolization of files with a build id to the receiver, except those that it cannot have.
    pub fn leave_identified(&mut self, left: LeftNames) {
        self.symbols.leave_identified(left.unsent);
        self.sent = left.sent;
    }

    /// Starts symbolizing new frames if `finds_names`, then calls `look` with the window so far.
    pub fn look(&mut self, finds_names: bool, look: impl FnOnce(&Profile)) {
        let (symbols, recorder) = (&mut self.symbols, &mut self.session.recorder);
        let profile = recorder.samples().profile();
        let now = Rows { frames: profile.frames.len(), processes: profile.processes.len() };
        let is_brief = now.are_few_more(self.looked);
        self.looked = now;
        let work = |profile: &mut Profile| {
            if finds_names {
                symbols.round(profile);
                symbols.take(profile);
            }
            look(profile);
        };
        match is_brief {
            true => recorder.samples_mut().briefly(work),
            false => recorder.samples_mut().meanwhile(work),
        }
    }

    /// Does work that may take long, while the recorder's rings are emptied beside it.
    pub fn meanwhile(&mut self, work: impl FnOnce()) {
        self.session.recorder.samples_mut().meanwhile(|_| work());
    }

    /// Takes out the samples since the last call, symbolized. Nothing keeps IDs of the old profile, which may be stored, sent or dropped.
    pub fn take(&mut self) -> TakenWindow {
        let held = self.find_last_names();
        let TakenProfile { mut profile, cgroups, running } = self.session.recorder.take();
        self.looked = Rows::default();
        self.symbols.renew();
        make_names_readable(&mut profile, self.has_reasons);
        TakenWindow { profile, cgroups, running, held }
    }

    /// Symbolizes the frames that still lack names, except those left to the receiver. Returns the files among them that the receiver may have as well.
    fn find_last_names(&mut self) -> Vec<BuildId> {
        let Self { session, symbols, sent, patience, .. } = self;
        let vanished = session.recorder.samples().vanished();
        session.recorder.samples_mut().meanwhile(|profile| {
            let build_id = |(dso, _): &(DsoId, File)| profile.dsos[*dso].build_id.clone();
            let is_left = |one: &_| build_id(one).is_some_and(|build_id| sent.contains(&build_id));
            let vanished: Vec<_> = vanished.into_iter().filter(|one| !is_left(one)).collect();
            let held = vanished.iter().filter_map(build_id).collect();
            symbols.round(profile);
            symbols.round_held(profile, vanished);
            symbols.settle(*patience);
            symbols.take(profile);
            held
        })
    }

    /// Stops the recording. Returns the samples since the last [`take`](Self::take), symbolized.
    pub fn end(mut self) -> EndedWindows {
        self.find_last_names();
        let Self { session, mut symbols, patience, has_reasons, .. } = self;
        let (recorded, _) = session.stop();
        let mut profile = recorded.profile;
        // Frames of the last records.
        symbols.round(&profile);
        symbols.settle(patience);
        symbols.take(&mut profile);
        make_names_readable(&mut profile, has_reasons);
        EndedWindows {
            profile,
            cgroups: recorded.cgroups,
            samples: recorded.statistics.samples,
            lost: recorded.statistics.lost_samples,
            unmeasured: recorded.unmeasured.unwrap_or_default(),
        }
    }
}

/// Demangles the names of a window, and names the reasons of waits.
fn make_names_readable(profile: &mut Profile, has_reasons: bool) {
    make_readable(profile);
    if has_reasons {
        name_reasons(profile);
    }
}
