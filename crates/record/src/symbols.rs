//! Looks up names during the recording, so that little work is left when the target ends.

use std::fs::File;
use std::time::Duration;

use plumb_capture_perf::Recorder;
use plumb_process::path_of_open;
use plumb_profile::{DsoId, Profile};
use plumb_symbolize::{Options, Session};

use crate::notices::{Notices, Progress};

/// Time of the first look-up: a shorter recording is not worth a thread.
const FIRST: Duration = Duration::from_millis(200);
/// Shortest time between two look-ups of new frames.
const INTERVAL: Duration = Duration::from_millis(400);
/// The interval is this fraction of the elapsed time: a look-up has a cost even if little is new.
const SHARE: u32 = 3;
/// Longest time between two look-ups: until then names are missing in the journal, and files may be deleted.
const LONGEST: Duration = Duration::from_secs(30);
/// Longest wait for names at the end before the recording is written without them.
const PATIENCE: Duration = Duration::from_millis(100);

/// The names of a recording.
pub(crate) struct SymbolLookup {
    session: Session,
    next: Duration,
}

impl SymbolLookup {
    /// Starts without names.
    pub fn begin(options: Options) -> Self {
        Self { session: Session::begin(options), next: FIRST }
    }

    /// Notes new processes. If due, requests names for new frames, and stores those found in the profile.
    pub fn look(&mut self, recorder: &mut Recorder) {
        let elapsed = recorder.elapsed();
        let session = &mut self.session;
        if elapsed < self.next {
            recorder.samples_mut().briefly(|profile| session.note_processes(profile));
            return;
        }
        self.next = elapsed + INTERVAL.max(elapsed / SHARE).min(LONGEST);
        recorder.samples_mut().meanwhile(|profile| {
            session.take(profile);
            session.round(profile);
        });
    }

    /// CPU time spent on names during the recording.
    pub fn early(&self) -> Duration {
        self.session.cpu_time()
    }

    /// Requests names for all remaining frames. `vanished`: files that can't be reached by path, which this process holds open.
    pub fn close(&mut self, profile: &Profile, vanished: &[(DsoId, File)]) {
        self.session.note_processes(profile);
        self.session
            .close(profile, vanished.iter().map(|(dso, file)| (*dso, vec![path_of_open(file)])).collect());
    }

    /// Whether all names are found, or will be shortly.
    pub fn are_found(&mut self) -> bool {
        self.session.wait(Some(PATIENCE), &mut |_| {})
    }

    /// Writes the names into the profile once they are found.
    pub fn store(self, profile: &mut Profile, notices: &mut dyn Notices) {
        self.session.finish(profile, &mut |found| notices.progress(Progress::Names(&found)));
    }
}
