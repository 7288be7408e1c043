//! A recording that goes on: started, waited for, looked at, stopped. Every command that samples has one: `record` and what shows a
//! profile of a command keep what comes (`super::record`), `top` looks at it meanwhile (`live`).
//!
//! Not here: what becomes of the samples.

use std::time::Duration;

use anyhow::Result;
use plumb_capture_api::TargetObserver;
use plumb_capture_perf::{Recorded, Recorder};
use plumb_process::usage::Priority;
use plumb_target::{End, Target};

use super::memory::Memory;
use super::request::{Capturing, RecordRequest};

/// A recording that goes on.
pub(super) struct Session {
    /// What samples.
    pub recorder: Recorder,
    target: Target,
    memory: Memory,
    duration: Option<Duration>,
}

/// What a step led to.
pub enum Step {
    /// There is more to come.
    GoesOn,
    /// The duration that was asked for is over.
    TimeUp,
    /// The target has ended, or a signal came.
    Ended(End),
}

impl Session {
    /// Starts it. Also gives back what is to be said: why it is less than what was asked for.
    ///
    /// # Errors
    /// The kernel or the user's rights don't allow it, or the command can't be started.
    pub fn start(
        request: &RecordRequest,
        observer: Option<&mut dyn TargetObserver>,
    ) -> Result<(Self, Vec<String>)> {
        plumb_capture_perf::return_freed_memory();
        // On a busy machine the time that was asked for would be over before it has begun. A command would inherit it.
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
        Ok((session, note.into_iter().collect()))
    }

    /// Sleeps until there is something to do, `most` at most, and does it.
    pub fn step(&mut self, most: Duration) -> Result<Step> {
        let left = self.duration.map(|duration| duration.saturating_sub(self.recorder.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Step::TimeUp);
        }
        let end = self.recorder.step(left.map_or(most, |left| left.min(most)))?;
        Ok(end.map_or(Step::GoesOn, Step::Ended))
    }

    /// Gives back freed memory, if it is time to. Returns whether little is left.
    pub fn look_at_memory(&mut self) -> bool {
        if self.memory.is_due() {
            let memory = &mut self.memory;
            self.recorder.meanwhile(|_| memory.look());
        }
        self.memory.is_scarce()
    }

    /// Whether little memory was left when it was looked last.
    pub fn is_scarce(&self) -> bool {
        self.memory.is_scarce()
    }

    /// Who is observed.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// A sentence, if more memory was taken than the bound.
    pub fn exceeded(&self) -> Option<String> {
        self.memory.exceeded()
    }

    /// Stops it, and gives back what was recorded and [`exceeded`](Self::exceeded), as of then.
    pub fn stop(self) -> (Recorded, Option<String>) {
        let recorded = self.recorder.finish();
        (recorded, self.memory.exceeded())
    }
}
