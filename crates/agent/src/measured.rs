//! A quantity that is measured alongside samples of CPU time, such as off-CPU time, and its windows.
//!
//! A wait in progress at the end of a window is counted up to then, so a hanging thread is in every window, with the stack at which it hangs.
//!
//! Elsewhere: measuring (`capture-bpf`).

use std::time::Duration;

use plumb_capture_api::Unmeasured;
use plumb_profile::Profile;
use plumb_record::{EndedWindows, LeftNames, MeasureRequest, TakenWindow};

use crate::capture::Capture;
use crate::error::AgentError;
use crate::labels::ProcessDirectory;
use crate::options::AgentOptions;
use crate::window::{self, ClosedWindow, WindowFacts};

/// The recording of a measured quantity.
pub(crate) struct MeasuredWindows {
    measure: MeasureRequest,
    capture: Capture,
    directory: ProcessDirectory,
    /// Attributes of the agent itself.
    own: Vec<(String, String)>,
    /// Weight that was in no window at the end of the last window.
    unmeasured: Unmeasured,
}

impl MeasuredWindows {
    /// Starts recording, if the options request a measurement.
    pub fn begin(
        options: &AgentOptions,
        directory: ProcessDirectory,
        own: Vec<(String, String)>,
    ) -> Result<Option<Self>, AgentError> {
        let Some(measure) = options.profiles.measure else { return Ok(None) };
        let capture = Capture::begin(options, Some(measure))?;
        Ok(Some(Self { measure, capture, directory, own, unmeasured: Unmeasured::default() }))
    }

    /// The measured quantity.
    pub fn measure(&self) -> MeasureRequest {
        self.measure
    }

    /// Reads the pending records.
    pub fn step(&mut self) -> Result<(), AgentError> {
        self.capture.step(Duration::ZERO).map(drop)
    }

    /// Inspects new processes, and starts symbolizing new frames if `finds_names`.
    pub fn look(&mut self, finds_names: bool) {
        let Self { capture, directory, .. } = self;
        capture.recording.look(finds_names, |profile| directory.look(profile));
    }

    /// Leaves the symbolization of files with a build id to the server, except those that it cannot have.
    pub fn leave_identified(&mut self, left: LeftNames) {
        self.capture.recording.leave_identified(left);
    }

    /// Takes out the window, passes it to `look`, and closes it.
    pub fn close(&mut self, facts: WindowFacts, look: impl FnOnce(&TakenWindow)) -> ClosedWindow {
        let taken = self.capture.recording.take();
        look(&taken);
        self.directory.learn(taken.cgroups);
        let profile = taken.profile;
        let now = self.capture.recording.unmeasured();
        let outside = since(self.unmeasured, now);
        self.unmeasured = now;
        let Self { measure, directory, own, .. } = self;
        let closed = close(*measure, &profile, directory, (facts, outside), own.clone());
        drop(profile);
        self.capture.trim();
        closed
    }

    /// Stops recording and closes the last window.
    pub fn end(self, facts: WindowFacts) -> ClosedWindow {
        let Self { measure, capture, mut directory, own, unmeasured } = self;
        let EndedWindows { profile, cgroups, unmeasured: now, .. } = capture.recording.end();
        directory.learn(cgroups);
        close(measure, &profile, &mut directory, (facts, since(unmeasured, now)), own)
    }
}

/// The weight that is in no window since `before`.
fn since(before: Unmeasured, now: Unmeasured) -> Unmeasured {
    Unmeasured {
        short: now.short.saturating_sub(before.short),
        short_ns: now.short_ns.saturating_sub(before.short_ns),
        lost: now.lost.saturating_sub(before.lost),
        lost_ns: now.lost_ns.saturating_sub(before.lost_ns),
        rest_ns: now.rest_ns.saturating_sub(before.rest_ns),
    }
}

fn close(
    measure: MeasureRequest,
    profile: &Profile,
    directory: &mut ProcessDirectory,
    (facts, outside): (WindowFacts, Unmeasured),
    own: Vec<(String, String)>,
) -> ClosedWindow {
    let [short, lost] = match measure {
        MeasureRequest::OffCpu { .. } => ["agent_short_off_cpu", "agent_lost_off_cpu"],
    };
    let figures = [(short, outside.short_ns), (lost, outside.lost_ns)];
    let closed = window::close_measured(profile, directory.finish(profile), facts, figures, own);
    ClosedWindow { lost_off_cpu_ns: outside.lost_ns, ..closed }
}
