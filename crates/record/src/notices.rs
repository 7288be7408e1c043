//! Messages and progress of a recording while it runs.

use std::time::Duration;

use plumb_ingest::Statistics;
use plumb_target::{Notice, Target};

/// Receives messages and progress of a recording while it runs. `()` ignores them.
///
/// # Order of calls
/// [`message`](Self::message) may come at any time, also before sampling begins. Progress comes in this order:
/// [`UntilSignal`](Progress::UntilSignal) at most once, for a target that is not a command and has no duration;
/// [`Sampling`](Progress::Sampling) after each step; [`Sampled`](Progress::Sampled) once; [`Names`](Progress::Names) some times;
/// [`Named`](Progress::Named) once. A recording that fails ends without the rest.
/// [`of_target`](Self::of_target) comes while a command runs, and after `Named` if a command that goes on has to be ended.
///
/// # What the implementor owes
/// All calls come from the recorder's thread, between two reads of the rings. A method that waits (for a pipe, a lock, a network) costs samples:
/// hand the value to another thread, or drop progress that comes too often. `Sampling` comes several times a second; a display that shows it
/// limits its own rate. Methods cannot fail, and a panic ends the recording. Texts may contain names that a program chose: escape them.
///
/// While a command shares the terminal, do not write there before `Sampled`: two programs on one line are unreadable.
///
/// Example: `ProgressLine` in the command (`recording/progress.rs`).
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
