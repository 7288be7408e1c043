//! Times off the processor, recorded beside samples of processor time, and their windows.
//!
//! Times that go on as a window ends are in it up to then: a thread that hangs is in every window, with the stack at which it hangs.
//!
//! Not here: how they are measured (`capture-bpf`).

use std::collections::HashSet;
use std::time::Duration;

use plumb_profile::{BuildId, Profile};
use plumb_symbolize::name_reasons;

use crate::capture::{Capture, Ended, Measured};
use crate::error::AgentError;
use crate::labels::ProcessDirectory;
use crate::options::AgentOptions;
use crate::window::{self, ClosedWindow, WindowFacts};

/// The recorder of times off the processor.
pub(crate) struct OffCpuWindows {
    capture: Capture,
    directory: ProcessDirectory,
}

impl OffCpuWindows {
    /// Begins, if that is wanted.
    pub fn begin(options: &AgentOptions, directory: ProcessDirectory) -> Result<Option<Self>, AgentError> {
        let Some(min_ns) = options.off_cpu_min_ns else { return Ok(None) };
        Ok(Some(Self { capture: Capture::begin(options, Measured::OffCpu(min_ns))?, directory }))
    }

    /// Takes what has come.
    pub fn step(&mut self) -> Result<(), AgentError> {
        self.capture.step(Duration::ZERO).map(drop)
    }

    /// Looks at what is new.
    pub fn look(&mut self) {
        let Self { capture, directory } = self;
        capture.look(|profile| directory.look(profile));
    }

    /// Leaves frames of files with a build id to the server, but for these files.
    pub fn leave_identified(&mut self, but: HashSet<BuildId>) {
        self.capture.leave_identified(but);
    }

    /// Takes a window out, and shows it before it is closed.
    pub fn close(&mut self, facts: WindowFacts, look: impl FnOnce(&Profile)) -> ClosedWindow {
        let mut profile = self.capture.take();
        look(&profile);
        let closed = close(&mut profile, &mut self.directory, facts);
        drop(profile);
        self.capture.trim();
        closed
    }

    /// Stops, and closes the last window.
    pub fn end(self, facts: WindowFacts) -> ClosedWindow {
        let Self { capture, mut directory } = self;
        let Ended { mut profile, .. } = capture.end();
        close(&mut profile, &mut directory, facts)
    }
}

fn close(profile: &mut Profile, directory: &mut ProcessDirectory, facts: WindowFacts) -> ClosedWindow {
    name_reasons(profile);
    window::close_off_cpu(profile, directory.finish(profile), facts)
}
