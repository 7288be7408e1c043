//! SymbolLookup, found while the recording goes on, so that there is little left to do when the target ends.

use std::fs::File;
use std::time::Duration;

use plumb_capture_perf::Recorder;
use plumb_process::path_of_open;
use plumb_profile::{DsoId, Profile};
use plumb_symbolize::{Options, Session};

use super::progress::ProgressLine;

/// When the first frames are looked at: what ends before is not worth a thread of its own.
const FIRST: Duration = Duration::from_millis(200);
/// Shortest time between two looks at what is new.
const INTERVAL: Duration = Duration::from_millis(400);
/// The longer the recording, the rarer: a look costs something where little is new too.
const SHARE: u32 = 3;
/// Longest time between two looks: until then names are in no journal, and files may go away.
const LONGEST: Duration = Duration::from_secs(30);
/// How long names may take at the end before the recording is written without them.
const PATIENCE: Duration = Duration::from_millis(100);

/// The names of a recording.
pub(super) struct SymbolLookup {
    session: Session,
    next: Duration,
}

impl SymbolLookup {
    /// None yet.
    pub fn begin(options: Options) -> Self {
        Self { session: Session::begin(options), next: FIRST }
    }

    /// Has names found for what is new, and those that were found put into the profile, if it is time to.
    pub fn look(&mut self, recorder: &mut Recorder) {
        let elapsed = recorder.elapsed();
        if elapsed >= self.next {
            self.next = elapsed + INTERVAL.max(elapsed / SHARE).min(LONGEST);
            let session = &mut self.session;
            recorder.meanwhile(|profile| {
                session.take(profile);
                session.round(profile);
            });
        }
    }

    /// Processor time that names took while the recording went on.
    pub fn early(&self) -> Duration {
        self.session.cpu_time()
    }

    /// Has names found for all frames. `vanished` are files that can't be reached by their paths, held open by us.
    pub fn close(&mut self, profile: &Profile, vanished: &[(DsoId, File)]) {
        self.session
            .close(profile, vanished.iter().map(|(dso, file)| (*dso, vec![path_of_open(file)])).collect());
    }

    /// Whether all is found, or will be in a moment.
    pub fn are_found(&mut self) -> bool {
        self.session.wait(Some(PATIENCE), &mut |_| {})
    }

    /// Writes the names into the profile once they are found.
    pub fn store(self, profile: &mut Profile, progress: &mut ProgressLine) {
        self.session.finish(profile, &mut |found| progress.progress(&found));
    }
}
