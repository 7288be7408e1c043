//! Off-CPU time, recorded alongside samples of CPU time, and its windows.
//!
//! A wait in progress at the end of a window is counted up to then, so a hanging thread is in every window, with the stack at which it hangs.
//!
//! Elsewhere: measuring the waits (`capture-bpf`).

use std::time::Duration;

use plumb_capture_api::Unmeasured;
use plumb_capture_bpf::{Measured, OffCpu};
use plumb_profile::Profile;
use plumb_symbolize::name_reasons;

use crate::capture::{Capture, Ended, LeftNames, TakenWindow};
use crate::error::AgentError;
use crate::labels::ProcessDirectory;
use crate::options::AgentOptions;
use crate::window::{self, ClosedWindow, TimesOutside, WindowFacts};

/// The recorder of off-CPU time.
pub(crate) struct OffCpuWindows {
    capture: Capture,
    directory: ProcessDirectory,
    /// Attributes of the agent itself.
    own: Vec<(String, String)>,
    /// Off-CPU time outside of windows at the end of the last window.
    unmeasured: Unmeasured,
}

impl OffCpuWindows {
    /// Starts recording, if the options request off-CPU time.
    pub fn begin(
        options: &AgentOptions,
        directory: ProcessDirectory,
        own: Vec<(String, String)>,
    ) -> Result<Option<Self>, AgentError> {
        let Some(min_ns) = options.profiles.off_cpu_min_ns else { return Ok(None) };
        let stacks_per_second = options.frequency_hz;
        let measured = OffCpu { min_ns, stacks_per_second, walks: true, looks_back: true };
        let capture = Capture::begin(options, Some(Measured::OffCpu(measured)))?;
        Ok(Some(Self { capture, directory, own, unmeasured: Unmeasured::default() }))
    }

    /// Reads the pending records.
    pub fn step(&mut self) -> Result<(), AgentError> {
        self.capture.step(Duration::ZERO).map(drop)
    }

    /// Inspects new processes, and starts symbolizing new frames if `finds_names`.
    pub fn look(&mut self, finds_names: bool) {
        let Self { capture, directory, .. } = self;
        capture.look(finds_names, |profile| directory.look(profile));
    }

    /// Leaves the symbolization of files with a build id to the server, except those that it cannot have.
    pub fn leave_identified(&mut self, left: LeftNames) {
        self.capture.leave_identified(left);
    }

    /// Takes out the window, passes it to `look`, and closes it.
    pub fn close(&mut self, facts: WindowFacts, look: impl FnOnce(&TakenWindow)) -> ClosedWindow {
        let taken = self.capture.take();
        look(&taken);
        self.directory.learn(taken.cgroups);
        let mut profile = taken.profile;
        let now = self.capture.unmeasured();
        let outside = outside(self.unmeasured, now);
        self.unmeasured = now;
        let closed = close(&mut profile, &mut self.directory, (facts, outside), self.own.clone());
        drop(profile);
        self.capture.trim();
        closed
    }

    /// Stops recording and closes the last window.
    pub fn end(self, facts: WindowFacts) -> ClosedWindow {
        let Self { capture, mut directory, own, unmeasured } = self;
        let Ended { mut profile, cgroups, unmeasured: now, .. } = capture.end();
        directory.learn(cgroups);
        close(&mut profile, &mut directory, (facts, outside(unmeasured, now)), own)
    }
}

/// Off-CPU time since `before` that is in no window.
fn outside(before: Unmeasured, now: Unmeasured) -> TimesOutside {
    TimesOutside {
        short_ns: now.short_ns.saturating_sub(before.short_ns),
        lost_ns: now.lost_ns.saturating_sub(before.lost_ns),
    }
}

fn close(
    profile: &mut Profile,
    directory: &mut ProcessDirectory,
    (facts, outside): (WindowFacts, TimesOutside),
    own: Vec<(String, String)>,
) -> ClosedWindow {
    name_reasons(profile);
    window::close_off_cpu(profile, directory.finish(profile), (facts, outside), own)
}
