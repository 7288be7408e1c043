//! Messages and progress of a recording while it runs.

use std::time::Duration;

use plumb_ingest::Statistics;
use plumb_target::{Notice, Target};

/// Receives messages and progress of a recording while it runs. `()` ignores them.
pub trait Notices {
    /// A sentence for the user.
    fn message(&mut self, text: &str) {
        let _ = text;
    }

    /// A command that a signal should end goes on: what the next signal does.
    fn of_target(&mut self, target: &Target, notice: Notice) {
        let _ = (target, notice);
    }

    /// The state of the recording. It replaces the previous one.
    fn progress(&mut self, progress: Progress<'_>) {
        let _ = progress;
    }
}

impl Notices for () {}

/// The state of a recording.
pub enum Progress<'a> {
    /// Sampling has begun, or waits for the target to start, and goes on until a signal comes.
    UntilSignal {
        /// Whether the target has yet to start.
        waits: bool,
    },
    /// Samples so far.
    Sampling {
        /// Time since the start.
        elapsed: Duration,
        /// Counts of samples.
        statistics: &'a Statistics,
    },
    /// Sampling has ended. A command that shared the terminal does not write to it any more, or goes on unobserved.
    Sampled,
    /// Names of functions are looked up.
    Names(&'a plumb_symbolize::Progress),
    /// All names are there.
    Named,
}
