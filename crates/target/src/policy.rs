//! The effect of signals on a recording.
//!
//! A command has the terminal, so a Ctrl-C is the command's: the recorder waits for it, and the third one kills it. A signal that was
//! sent to the recorder alone is passed on to the command. A signal that was ignored when plumb was started (`nohup`, `cmd &` in a script)
//! stays ignored when the terminal sends it.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use plumb_process::{pidfd, procfs};

use crate::held::Child;
use crate::signals::{self, Signal, Signals};
use crate::target::End;

/// Number of Ctrl-C that kill the command.
const KILLS: u32 = 3;
/// Time after the first Ctrl-C until the user is notified that plumb waits for the command: nearly all end at once.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time that a command has to end after it was asked to, before the recording ends without it.
const GRACE: Duration = Duration::from_secs(2);

/// Notice for the user about a command that a Ctrl-C didn't end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The recorder waits for the command; this many more Ctrl-C kill it.
    Waiting(u32),
    /// The command was killed.
    Killed,
}

/// Reaction to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Nothing.
    Ignore,
    /// Check whether a child has ended.
    Reap,
    /// Send the signal to the command.
    PassOn(i32),
    /// Kill the command and its descendants.
    Kill,
    /// End the recording because of this signal.
    End(i32),
}

/// Reaction that is left to the caller of [`SignalPolicy::heed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heeded {
    /// A child may have ended.
    Reap,
    /// The recording has to end because of this signal.
    End(i32),
}

/// Signals received so far, and their effects.
#[derive(Debug, Default)]
pub struct SignalPolicy {
    /// Number of interrupts of the command by the user or another process, and the time of the last one.
    interrupts: u32,
    last_interrupt: Option<Instant>,
    /// Number of interrupts that the user was notified of.
    noticed: u32,
    told_to_end: Option<(Instant, i32)>,
}

impl SignalPolicy {
    /// Reacts to the received signals. `command`: the recorded command, if it still runs.
    pub fn heed(&mut self, signals: &Signals, command: Option<Child>) -> Option<Heeded> {
        while let Some(signal) = signals.next() {
            match (self.on(signal, command.is_some(), Instant::now()), command) {
                (Action::Reap, _) => return Some(Heeded::Reap),
                (Action::End(number), _) => return Some(Heeded::End(number)),
                // The command may have ended, or belong to another user.
                (Action::PassOn(number), Some(child)) => drop(signals::send(child.pid(), number)),
                (Action::Kill, Some(child)) => send_all(child, libc::SIGKILL),
                (Action::Ignore | Action::PassOn(_) | Action::Kill, _) => {}
            }
        }
        None
    }

    /// Returns the reaction to `signal`. `command`: whether a recorded command still runs.
    fn on(&mut self, signal: Signal, command: bool, now: Instant) -> Action {
        let is_job_control = matches!(signal.number, libc::SIGINT | libc::SIGQUIT);
        match signal.number {
            libc::SIGCHLD => Action::Reap,
            // A shell makes the programs that it starts with `&` ignore the terminal's keys. A process that sends such a signal on purpose means it.
            _ if signal.was_ignored && (signal.from_terminal || !is_job_control) => Action::Ignore,
            number if !command => Action::End(number),
            number if is_job_control => self.interrupt(signal, number, now),
            number => self.tell_to_end(number, now),
        }
    }

    fn interrupt(&mut self, signal: Signal, number: i32, now: Instant) -> Action {
        self.interrupts += 1;
        self.last_interrupt = Some(now);
        if self.interrupts == KILLS {
            return Action::Kill;
        }
        if self.interrupts > KILLS {
            // The command can't be killed: it belongs to another user, or waits for a disk that is gone.
            return Action::End(number);
        }
        match (signal.from_terminal, signal.was_ignored) {
            (true, _) => Action::Ignore,
            // The command has inherited that this signal is ignored.
            (false, true) => self.tell_to_end(libc::SIGTERM, now),
            (false, false) => Action::PassOn(number),
        }
    }

    fn tell_to_end(&mut self, number: i32, now: Instant) -> Action {
        if self.told_to_end.is_some() {
            return Action::End(number);
        }
        self.told_to_end = Some((now, number));
        Action::PassOn(number)
    }

    /// Returns the signal to end with, if the command was asked to end and has not ended in time.
    pub fn overdue(&self, now: Instant) -> Option<i32> {
        let (told, number) = self.told_to_end?;
        (now.duration_since(told) >= GRACE).then_some(number)
    }

    /// Returns a notice for the user about a command that still runs; each only once.
    pub fn notice(&mut self, now: Instant) -> Option<Notice> {
        let is_patient = self.last_interrupt.is_none_or(|last| now.duration_since(last) < PATIENCE);
        if self.noticed == self.interrupts || self.interrupts == 1 && is_patient {
            return None;
        }
        self.noticed = self.interrupts;
        Some(match KILLS.saturating_sub(self.interrupts) {
            0 => Notice::Killed,
            more => Notice::Waiting(more),
        })
    }

    /// Returns the longest time to sleep until the next look, at most `most`.
    pub fn patience_ms(&self, most: i32) -> i32 {
        if self.interrupts == 0 && self.told_to_end.is_none() { most } else { most.min(100) }
    }

    /// Returns whether a signal has arrived that was meant to end the command or the recorder.
    pub fn is_interrupted(&self) -> bool {
        self.interrupts > 0 || self.told_to_end.is_some()
    }
}

/// Asks a command, with the processes that it started, to end.
pub fn terminate(command: Child) {
    send_all(command, libc::SIGTERM);
}

/// Ends a command whose recording is over, as perf does: waits for its end, or for a signal that ends the recorder without it, but no longer
/// than the time that a command has to end.
pub fn end(
    command: Child,
    signals: &Signals,
    steering: &mut SignalPolicy,
    mut say: impl FnMut(Notice),
) -> io::Result<End> {
    let process = pidfd(command.pid()).ok();
    terminate(command);
    steering.told_to_end.get_or_insert((Instant::now(), libc::SIGTERM));
    loop {
        if let Some((status, _)) = command.try_wait()? {
            return Ok(End::Exited(status));
        }
        if let Some(Heeded::End(number)) = steering.heed(signals, Some(command)) {
            return Ok(End::Signal(number));
        }
        if let Some(number) = steering.overdue(Instant::now()) {
            return Ok(End::Signal(number));
        }
        steering.notice(Instant::now()).into_iter().for_each(&mut say);
        let files: Vec<_> = process.iter().map(AsFd::as_fd).chain([signals.as_fd()]).collect();
        signals::poll(&files, steering.patience_ms(1000))?;
    }
}

/// Sends a signal to a command with all its present descendants: if only a shell died, the programs that it runs would stay.
fn send_all(child: Child, signal: i32) {
    for pid in procfs::tree(&[child.pid()]) {
        // The process may have ended.
        let _ = signals::send(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(number: i32, from_terminal: bool) -> Signal {
        Signal { number, from_terminal, was_ignored: false }
    }

    #[test]
    fn ctrl_c_is_the_commands_and_the_third_kills_it() {
        let (mut steering, now) = (SignalPolicy::default(), Instant::now());
        let ctrl_c = signal(libc::SIGINT, true);
        assert_eq!(steering.on(ctrl_c, true, now), Action::Ignore);
        assert_eq!(steering.notice(now), None, "it may end at once");
        assert_eq!(steering.notice(now + PATIENCE), Some(Notice::Waiting(2)));
        assert_eq!(steering.notice(now + 2 * PATIENCE), None, "it is said once");
        assert_eq!(steering.on(ctrl_c, true, now), Action::Ignore);
        assert_eq!(steering.notice(now), Some(Notice::Waiting(1)));
        assert_eq!(steering.overdue(now + 10 * GRACE), None, "it is waited for");
        assert_eq!(steering.on(ctrl_c, true, now), Action::Kill);
        assert_eq!(steering.notice(now), Some(Notice::Killed));
        assert_eq!(steering.on(ctrl_c, true, now), Action::End(libc::SIGINT), "it can't be killed");
    }

    #[test]
    fn a_signal_to_the_recorder_alone_reaches_the_command() {
        let (mut steering, now) = (SignalPolicy::default(), Instant::now());
        assert_eq!(steering.on(signal(libc::SIGINT, false), true, now), Action::PassOn(libc::SIGINT));
        assert_eq!(steering.on(signal(libc::SIGINT, false), true, now), Action::PassOn(libc::SIGINT));
        let term = signal(libc::SIGTERM, false);
        assert_eq!(steering.on(term, true, now), Action::PassOn(libc::SIGTERM));
        assert_eq!(steering.overdue(now + GRACE / 2), None);
        assert_eq!(steering.overdue(now + GRACE), Some(libc::SIGTERM));
        assert_eq!(steering.on(term, true, now), Action::End(libc::SIGTERM));
    }

    #[test]
    fn without_a_command_every_signal_ends() {
        let (mut steering, now) = (SignalPolicy::default(), Instant::now());
        assert_eq!(steering.on(signal(libc::SIGINT, true), false, now), Action::End(libc::SIGINT));
        assert_eq!(steering.on(signal(libc::SIGCHLD, false), false, now), Action::Reap);
    }

    /// As with `nohup`, and with `plumb record ... &` in a script.
    #[test]
    fn what_was_ignored_at_the_start_is_ignored_unless_somebody_sends_it() {
        let ignored = |number, from_terminal| Signal { was_ignored: true, ..signal(number, from_terminal) };
        for command in [true, false] {
            let (mut steering, now) = (SignalPolicy::default(), Instant::now());
            assert_eq!(steering.on(ignored(libc::SIGINT, true), command, now), Action::Ignore);
            assert_eq!(steering.on(ignored(libc::SIGHUP, false), command, now), Action::Ignore);
            assert!(!steering.is_interrupted());
        }
        let (mut steering, now) = (SignalPolicy::default(), Instant::now());
        assert_eq!(steering.on(ignored(libc::SIGINT, false), false, now), Action::End(libc::SIGINT));
        let passed_on = steering.on(ignored(libc::SIGINT, false), true, now);
        assert_eq!(passed_on, Action::PassOn(libc::SIGTERM), "the command ignores what it inherited");
        assert_eq!(steering.overdue(now + GRACE), Some(libc::SIGTERM));
    }
}
