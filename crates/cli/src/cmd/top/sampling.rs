//! The thread that samples, and what the one that shows asks it for. It never waits for the other: a terminal that stands still, a
//! pipe that nobody reads, or a large table being made loses no samples.
//!
//! Not here: the recording itself (`recording`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::scope;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use plumb_profile::Profile;

use super::Left;
use crate::browse::state::Window;
use crate::recording::{LiveSession, Step, WindowSum};

/// How long is slept at most: a question waits so long, and files that the target deletes are opened before.
const STEP: Duration = Duration::from_millis(50);

/// What is wanted of the recording.
enum Question {
    /// What was sampled in a window that ends now, or when an earlier one did.
    Stretch(Window, Option<u64>),
    /// All of it.
    Everything,
    /// Everything begins now.
    Reset,
}

/// An answer to [`Question::Stretch`] or [`Question::Everything`].
pub(super) enum Answer {
    Stretch(Box<WindowSum>),
    Everything(Box<Profile>),
}

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// Not yet.
    Later,
    /// There is no more to come: the recording has ended.
    Never,
}

/// The recording, as who shows it sees it.
pub(super) struct Sampling {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Sampling {
    /// Asks for a window that ends now, or when an earlier one did.
    pub fn ask_for(&self, window: Window, until_ns: Option<u64>) {
        self.ask(Question::Stretch(window, until_ns));
    }

    /// Asks for all that was recorded so far.
    pub fn ask_for_everything(&self) {
        self.ask(Question::Everything);
    }

    /// Has everything begin now.
    pub fn reset(&self) {
        self.ask(Question::Reset);
    }

    /// The next answer, waited for so long.
    pub fn answer(&self, timeout: Duration) -> Result<Answer, NoAnswer> {
        self.answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoAnswer::Later,
            RecvTimeoutError::Disconnected => NoAnswer::Never,
        })
    }

    fn ask(&self, question: Question) {
        // Who asks after the end learns of it when there is no answer.
        let _ = self.questions.send(question);
    }
}

/// Samples, while `show` runs in a thread of its own: until that leaves or there is no more to come.
pub(super) fn run(live: &mut LiveSession, show: impl FnOnce(Sampling) -> Result<()> + Send) -> Result<Left> {
    let (questions, asked) = channel();
    let (answering, answers) = channel();
    scope(|scope| {
        let showing = std::thread::Builder::new()
            .name("show".into())
            .spawn_scoped(scope, || show(Sampling { questions, answers }))
            .context("starting the thread that shows")?;
        let end = sample(live, &asked, &answering);
        // Now there is no more to come.
        drop(answering);
        showing.join().unwrap_or_else(|_| Err(anyhow!("the display thread panicked")))?;
        end
    })
}

/// Samples until the command or the time ends, or nobody asks any more.
fn sample(live: &mut LiveSession, asked: &Receiver<Question>, answering: &Sender<Answer>) -> Result<Left> {
    loop {
        match live.step(STEP)? {
            Step::GoesOn => {}
            Step::TimeUp => return Ok(Left::TimeUp),
            Step::Ended(end) => return Ok(Left::End(end)),
        }
        let answer = match asked.try_recv() {
            Ok(Question::Stretch(window, until_ns)) => {
                Answer::Stretch(Box::new(live.sum_of_window(window.nanoseconds(), until_ns)))
            }
            Ok(Question::Everything) => Answer::Everything(Box::new(live.so_far())),
            Ok(Question::Reset) => {
                live.reset();
                continue;
            }
            Err(TryRecvError::Empty) => continue,
            Err(TryRecvError::Disconnected) => return Ok(Left::Quit),
        };
        if answering.send(answer).is_err() {
            return Ok(Left::Quit);
        }
    }
}
