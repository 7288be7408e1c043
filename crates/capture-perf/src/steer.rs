//! What a signal means for a recording.
//!
//! A command has the terminal, so a Ctrl-C is the command's: the recording goes on until the command has ended, or
//! the user insists. A signal that was sent to the recorder alone is passed on to the command.

use std::time::{Duration, Instant};

use crate::sys::signals::Signal;

/// Two Ctrl-C within this time mean the recorder.
const INSISTS: Duration = Duration::from_secs(1);
/// How long a command that was told to end may take until the recording ends without it.
const GRACE: Duration = Duration::from_secs(2);

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    Ignore,
    /// Look whether a child has ended.
    Reap,
    /// Send the signal to the command.
    PassOn(i32),
    /// End the recording because of this signal.
    End(i32),
}

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    last_interrupt: Option<Instant>,
    told_to_end: Option<(Instant, i32)>,
}

impl Steering {
    /// What `signal` means. `command`: whether a command is recorded that still runs.
    pub fn on(&mut self, signal: Signal, command: bool, now: Instant) -> Action {
        match signal.number {
            libc::SIGCHLD => Action::Reap,
            number if !command => Action::End(number),
            number @ (libc::SIGINT | libc::SIGQUIT) => {
                let insists = self.last_interrupt.is_some_and(|last| now.duration_since(last) < INSISTS);
                self.last_interrupt = Some(now);
                match (insists, signal.from_terminal) {
                    (true, _) => Action::End(number),
                    (false, true) => Action::Ignore,
                    (false, false) => Action::PassOn(number),
                }
            }
            number if self.told_to_end.is_some() => Action::End(number),
            number => {
                self.told_to_end = Some((now, number));
                Action::PassOn(number)
            }
        }
    }

    /// The signal to end because of, if the command was told to end and hasn't in time.
    pub fn overdue(&self, now: Instant) -> Option<i32> {
        let (told, number) = self.told_to_end?;
        (now.duration_since(told) >= GRACE).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(number: i32, from_terminal: bool) -> Signal {
        Signal { number, from_terminal }
    }

    #[test]
    fn ctrl_c_is_the_commands_until_the_user_insists() {
        let (mut steering, now) = (Steering::default(), Instant::now());
        let ctrl_c = signal(libc::SIGINT, true);
        assert_eq!(steering.on(ctrl_c, true, now), Action::Ignore);
        assert_eq!(steering.on(ctrl_c, true, now + Duration::from_secs(5)), Action::Ignore);
        assert_eq!(steering.on(ctrl_c, true, now + Duration::from_millis(5300)), Action::End(libc::SIGINT));
    }

    #[test]
    fn a_signal_to_the_recorder_alone_reaches_the_command() {
        let (mut steering, now) = (Steering::default(), Instant::now());
        assert_eq!(steering.on(signal(libc::SIGINT, false), true, now), Action::PassOn(libc::SIGINT));
        let term = signal(libc::SIGTERM, false);
        assert_eq!(steering.on(term, true, now), Action::PassOn(libc::SIGTERM));
        assert_eq!(steering.overdue(now + GRACE / 2), None);
        assert_eq!(steering.overdue(now + GRACE), Some(libc::SIGTERM));
        assert_eq!(steering.on(term, true, now), Action::End(libc::SIGTERM));
    }

    #[test]
    fn without_a_command_every_signal_ends() {
        let (mut steering, now) = (Steering::default(), Instant::now());
        assert_eq!(steering.on(signal(libc::SIGINT, true), false, now), Action::End(libc::SIGINT));
        assert_eq!(steering.on(signal(libc::SIGCHLD, false), false, now), Action::Reap);
    }
}
