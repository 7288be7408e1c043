//! A running recording: starting, waiting, inspecting, stopping. Used by every command that samples: `record` and the commands that show
//! a profile of a command keep the samples (`sampled`), `top` reads them during the recording (`live`).
//!
//! Elsewhere: processing of the samples.

use std::time::Duration;

use plumb_capture_api::TargetObserver;
use plumb_capture_perf::{Recorded, Recorder};
use plumb_process::usage::Priority;
use plumb_target::{End, Target};

use crate::error::RecordError;
use crate::memory::Memory;
use crate::request::{Capturing, RecordRequest};

/// A running recording.
pub(crate) struct Session {
    /// The recorder.
    pub recorder: Recorder,
    target: Target,
    memory: Memory,
    duration: Option<Duration>,
}

/// The result of a step.
pub enum Step {
    /// The recording goes on.
    GoesOn,
    /// The requested duration is over.
    TimeUp,
    /// The target has ended, or a signal came.
    Ended(End),
}

impl Session {
    /// Starts the recording. Also returns the reason why it records less than requested, if so.
    ///
    /// # Errors
    /// The kernel or the user's privileges don't allow it, or the command can't be started.
    pub fn start(
        request: &RecordRequest,
        observer: Option<&mut dyn TargetObserver>,
    ) -> Result<(Self, Option<String>), RecordError> {
        plumb_capture_perf::return_freed_memory();
        // On a busy machine the requested time would be over before sampling starts. A command would inherit the priority.
        let _priority = match request.target {
            Target::Command(_) => None,
            _ => Priority::raise(),
        };
        let Capturing { options, unwinder, note } = request.setup()?;
        let recorder = Recorder::start_beside(&request.target, &options, unwinder, observer)?;
        let session = Self {
            recorder,
            target: request.target.clone(),
            memory: Memory::new(request.max_memory),
            duration: request.duration,
        };
        Ok((session, note))
    }

    /// Sleeps until there is work, at most for `most`, and does it.
    pub fn step(&mut self, most: Duration) -> Result<Step, RecordError> {
        let left = self.duration.map(|duration| duration.saturating_sub(self.recorder.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Step::TimeUp);
        }
        let end = self.recorder.step(left.map_or(most, |left| left.min(most)))?;
        Ok(end.map_or(Step::GoesOn, Step::Ended))
    }

    /// Returns freed memory to the system, if due. Returns whether little memory is left.
    pub fn look_at_memory(&mut self) -> bool {
        if self.memory.is_due() {
            let memory = &mut self.memory;
            self.recorder.samples_mut().meanwhile(|_| memory.look());
        }
        self.memory.is_scarce()
    }

    /// Whether the last check found little memory left.
    pub fn is_scarce(&self) -> bool {
        self.memory.is_scarce()
    }

    /// The observed target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A warning, if more memory was used than the limit.
    pub fn exceeded(&self) -> Option<String> {
        self.memory.exceeded()
    }

    /// Stops the recording, and returns the result and [`exceeded`](Self::exceeded) at that time.
    pub fn stop(self) -> (Recorded, Option<String>) {
        let recorded = self.recorder.finish();
        (recorded, self.memory.exceeded())
    }
}
