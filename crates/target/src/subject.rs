//! A target for observers that do not sample: it is held, released and waited for, and provides the processes to follow.
//!
//! Elsewhere: events, records, a profile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use plumb_process::usage::raise_file_limit;
use plumb_process::{pidfd, procfs};

use crate::begin::{check, follow_all, hold, pids_of, release};
use crate::cgroup::Cgroup;
use crate::error::TargetError;
use crate::held::{Child, Held};
use crate::policy::{self, Heeded, Notice, SignalPolicy};
use crate::signals::{self, Signals};
use crate::{End, Launch, Prints, Target};

/// A target. A command waits before its exec until it is released.
pub struct Subject {
    signals: Signals,
    steering: SignalPolicy,
    held: Option<(Held, Launch)>,
    child: Option<Child>,
    cgroup: Option<Cgroup>,
    pids: Vec<u32>,
    /// Readable when the processes end; empty for a target without an end.
    ends: Vec<OwnedFd>,
}

impl Subject {
    /// Finds the target's processes, or forks for its command.
    pub fn find(target: &Target) -> Result<Self, TargetError> {
        check(target)?;
        // If that fails, opening events says so.
        let _ = raise_file_limit();
        let cgroup = match target {
            Target::Cgroup(path) => Some(Cgroup::find(path).map_err(TargetError::Cgroup)?),
            _ => None,
        };
        let signals = Signals::watch().map_err(TargetError::system("watching for signals"))?;
        let held = match target {
            Target::Command(launch) => Some((hold(launch, &Prints::Through, &signals)?, launch.clone())),
            _ => None,
        };
        let pids = match &cgroup {
            Some(cgroup) => cgroup.some_pids().map_err(TargetError::Cgroup)?,
            None => pids_of(target, held.as_ref().map(|(held, _)| held)),
        };
        let ends = match target {
            Target::Command(_) | Target::Processes(_) | Target::Tree(_) => {
                pids.iter().filter_map(|&pid| pidfd(pid).ok()).collect()
            }
            Target::Cgroup(_) | Target::Awaited(_) | Target::Machine => Vec::new(),
        };
        Ok(Self { signals, steering: SignalPolicy::default(), held, child: None, cgroup, pids, ends })
    }

    /// The processes that were found, or the one that will become the command.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Calls `follow` with the pidfd of each of these processes and of their descendants, until no new ones are found.
    pub fn follow(&self, follow: impl FnMut(BorrowedFd<'_>) -> io::Result<()>) -> Result<(), TargetError> {
        follow_all(&self.pids, follow).map_err(TargetError::system("following processes"))
    }

    /// Lets a command continue to its exec.
    pub fn release(&mut self) -> Result<(), TargetError> {
        if let Some((held, launch)) = self.held.take() {
            self.child = Some(release(held, &launch)?);
        }
        Ok(())
    }

    /// Sleeps until the target ends, a signal comes, one of `wakes` is readable or `timeout` has passed.
    pub fn wait(&mut self, wakes: &[BorrowedFd<'_>], timeout: Duration) -> Result<Option<End>, TargetError> {
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut files = vec![self.signals.as_fd()];
        files.extend(self.ends.iter().map(AsFd::as_fd));
        files.extend(wakes);
        let ready = signals::poll(&files, timeout_ms).map_err(TargetError::system("waiting for calls"))?;
        let mut gone = ready.iter().skip(1).take(self.ends.len()).copied();
        let had = !self.ends.is_empty();
        self.ends.retain(|_| !gone.next().unwrap_or(false));
        if let Some(end) = self.heed_signals() {
            return Ok(Some(end));
        }
        if had && self.ends.is_empty() {
            return Ok(Some(self.reap().map_or(End::Gone, End::Exited)));
        }
        Ok(self.cgroup.as_ref().filter(|cgroup| cgroup.is_gone()).map(|_| End::Gone))
    }

    /// Continues with those of these processes that run, after the others have ended. Returns whether any runs.
    pub fn go_on_with(&mut self, pids: impl IntoIterator<Item = u32>) -> bool {
        self.pids = pids.into_iter().filter(|&pid| procfs::is_alive(pid)).collect();
        self.ends = self.pids.iter().filter_map(|&pid| pidfd(pid).ok()).collect();
        !self.ends.is_empty()
    }

    fn heed_signals(&mut self) -> Option<End> {
        while let Some(heeded) = self.steering.heed(&self.signals, self.child) {
            match (self.reap(), heeded) {
                (Some(status), _) => return Some(End::Exited(status)),
                (None, Heeded::Reap) => {}
                (None, Heeded::End(number)) => return Some(End::Signal(number)),
            }
        }
        self.steering.overdue(Instant::now()).map(End::Signal)
    }

    /// Returns a notice for the user on a command that a Ctrl-C didn't end; each only once.
    pub fn notice(&mut self) -> Option<Notice> {
        self.steering.notice(Instant::now())
    }

    fn reap(&mut self) -> Option<ExitStatus> {
        let (status, _) = self.child?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    /// Ends a command that still runs, as [`Running::end`](crate::Running::end); `None` if none does.
    pub fn end_command(&mut self, say: impl FnMut(Notice)) -> Option<End> {
        policy::end(self.child.take()?, &self.signals, &mut self.steering, say).ok()
    }
}
