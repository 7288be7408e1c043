//! The sampling thread, and the queries that the display thread sends it. Sampling never waits for the display: a stopped terminal, a
//! pipe without a reader, or a slow table loses no samples.
//!
//! Elsewhere: the recording itself (`plumb_record`).

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::scope;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use plumb_profile::Profile;
use plumb_record::{LiveSession, Notices, Step, WindowSum};

use super::Left;
use crate::browse::state::TimeRange;

/// Longest sleep: bounds the delay of a query, and files must be opened before the target deletes them.
const STEP: Duration = Duration::from_millis(50);

/// A query about the recording.
enum Question {
    /// The samples of a window that ends now or at an earlier time.
    Stretch(TimeRange, Option<u64>),
    /// The whole recording so far.
    Everything,
    /// Discard the samples so far.
    Reset,
}

/// An answer to [`Question::Stretch`] or [`Question::Everything`].
pub(super) enum Answer {
    Stretch(Box<WindowSum>),
    Everything(Box<Profile>),
}

/// Reason for a missing answer.
pub(super) enum NoAnswer {
    /// The answer is not ready yet.
    Later,
    /// The recording has ended, and no answer will follow.
    Never,
}

/// The display's handle on the recording.
pub(super) struct Sampling {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Sampling {
    /// Requests a window that ends now or at an earlier time.
    pub fn ask_for(&self, window: TimeRange, until_ns: Option<u64>) {
        self.ask(Question::Stretch(window, until_ns));
    }

    /// Requests everything recorded so far.
    pub fn ask_for_everything(&self) {
        self.ask(Question::Everything);
    }

    /// Discards the samples so far.
    pub fn reset(&self) {
        self.ask(Question::Reset);
    }

    /// Waits for the next answer, up to `timeout`.
    pub fn answer(&self, timeout: Duration) -> Result<Answer, NoAnswer> {
        self.answers.recv_timeout(timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => NoAnswer::Later,
            RecvTimeoutError::Disconnected => NoAnswer::Never,
        })
    }

    fn ask(&self, question: Question) {
        // After the end, the missing answer reports it.
        let _ = self.questions.send(question);
    }
}

/// Samples while `show` runs in a separate thread, until `show` returns or sampling ends.
pub(super) fn run(
    live: &mut LiveSession,
    notices: &mut dyn Notices,
    show: impl FnOnce(Sampling) -> Result<()> + Send,
) -> Result<Left> {
    let (questions, asked) = channel();
    let (answering, answers) = channel();
    scope(|scope| {
        let showing = std::thread::Builder::new()
            .name("show".into())
            .spawn_scoped(scope, || show(Sampling { questions, answers }))
            .context("starting the thread that shows")?;
        let end = sample(live, notices, (&asked, &answering));
        // Tells the display that no more answers follow.
        drop(answering);
        showing.join().unwrap_or_else(|_| Err(anyhow!("the display thread panicked")))?;
        end
    })
}

/// Samples until the command or the time ends, or the display has gone.
fn sample(
    live: &mut LiveSession,
    notices: &mut dyn Notices,
    (asked, answering): (&Receiver<Question>, &Sender<Answer>),
) -> Result<Left> {
    loop {
        match live.step(STEP, notices)? {
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
