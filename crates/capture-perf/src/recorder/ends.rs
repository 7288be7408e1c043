//! When a recording ends: by a signal, with its command, or when those that it goes by have gone.

use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Instant;

use plumb_process::usage::{CpuTime, monotonic_ns};
use plumb_process::{pidfd, procfs};
use plumb_target::begin::{hold, pids_of};
use plumb_target::signals::Signals;
use plumb_target::{Child, End, Heeded, Held, Joiners, Notice, SignalPolicy, Target};

use super::{Began, Recorder};
use crate::error::Error;
use crate::events::Attachment;
use crate::options::SamplingOptions;

/// What a recording of processes that it didn't start goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// The processes that were named; none: it has no end of its own.
    Named,
    /// All that descend from them.
    Descendants,
    /// Those that begin to run a program.
    Awaited,
}

/// The target, and what ends the recording of it.
pub(super) struct Observed {
    pub signals: Signals,
    pub policy: SignalPolicy,
    pub child: Option<Child>,
    /// What the command is called, if it is one.
    pub command: Option<String>,
    pub exited: Option<(ExitStatus, CpuTime)>,
    /// Become readable when the processes to be recorded end.
    pub ends: Vec<OwnedFd>,
    pub pids: Vec<u32>,
    /// Of a cgroup that was there.
    joiners: Joiners,
    whom: Whom,
}

impl Observed {
    /// Holds a command before its first instruction, or finds the processes that there are.
    pub fn hold(target: &Target, options: &SamplingOptions) -> Result<(Self, Option<Held>), Error> {
        let signals = if options.heeds_signals { Signals::watch() } else { Signals::none() };
        let signals = signals.map_err(Error::system("watching for signals"))?;
        let held = match target {
            Target::Command(launch) => Some(hold(launch, &options.prints, &signals)?),
            _ => None,
        };
        let observed = Self {
            signals,
            policy: SignalPolicy::default(),
            child: None,
            command: target.command_name(),
            exited: None,
            ends: Vec::new(),
            pids: pids_of(target, held.as_ref()),
            joiners: Joiners::default(),
            whom: Whom::of(target),
        };
        Ok((observed, held))
    }

    /// From now on it is seen when the processes end.
    pub fn watch_ends(&mut self) {
        self.ends = self.pids.iter().filter_map(|&pid| pidfd(pid).ok()).collect();
    }
}

impl Whom {
    fn of(target: &Target) -> Self {
        match target {
            Target::Tree(_) => Whom::Descendants,
            Target::Awaited(_) => Whom::Awaited,
            Target::Command(_) | Target::Processes(_) | Target::Cgroup(_) | Target::Machine => Whom::Named,
        }
    }
}

impl Recorder {
    pub(super) fn heed_signals(&mut self) -> Option<End> {
        let running = self.observed.child.filter(|_| self.observed.exited.is_none());
        while let Some(heeded) = self.observed.policy.heed(&self.observed.signals, running) {
            match (self.reap(), heeded) {
                (Some(end), _) => return Some(end),
                (None, Heeded::Reap) => {}
                (None, Heeded::End(number)) => return Some(End::Signal(number)),
            }
        }
        self.observed.policy.overdue(Instant::now()).map(End::Signal)
    }

    /// What the user is to know of a command that a Ctrl-C didn't end; each only once.
    pub fn notice(&mut self) -> Option<Notice> {
        self.observed.policy.notice(Instant::now())
    }

    fn reap(&mut self) -> Option<End> {
        // Until it is waited for, the kernel tells how long it waited for a processor.
        self.ingest.look_at_queues(true);
        let exited = self.observed.child?.try_wait().ok()??;
        self.observed.exited = Some(exited);
        Some(End::Exited(exited.0))
    }

    /// Forgets processes that have ended; an end if there is none left.
    pub(super) fn heed_ends(&mut self, gone: &[bool]) -> Option<End> {
        if self.observed.child.is_some() {
            // SIGCHLD tells too, unless another thread of the program takes it.
            return if gone.contains(&true) { self.reap() } else { None };
        }
        if let Attachment::Cgroup(cgroup) = &self.ground.attachment {
            return cgroup.is_gone().then_some(End::Gone);
        }
        if self.observed.pids.is_empty() {
            return None;
        }
        if self.observed.whom != Whom::Named && (gone.contains(&true) || self.observed.ends.is_empty()) {
            return self.heed_gone(gone);
        }
        if gone.contains(&true) {
            let mut gone = gone.iter();
            self.observed.ends.retain(|_| !gone.next().copied().unwrap_or(false));
            // A process that has ended shows as a zombie until its parent takes notice.
            return self.observed.ends.is_empty().then_some(End::Gone);
        }
        // Without pidfds (before kernel 5.3) the look at /proc does.
        let all_gone =
            self.observed.ends.is_empty() && !self.observed.pids.iter().any(|&pid| procfs::exists(pid));
        all_gone.then_some(End::Gone)
    }

    /// Some of those that the recording goes by have ended; an end if nobody is left who matters.
    fn heed_gone(&mut self, gone: &[bool]) -> Option<End> {
        let mut gone = gone.iter();
        self.observed.ends.retain(|_| !gone.next().copied().unwrap_or(false));
        // Who was forked, or has begun, is in the records.
        self.read(monotonic_ns());
        self.meet_arrived();
        let is_left = match self.observed.whom {
            Whom::Descendants => self.ingest.followed().any(procfs::is_alive),
            Whom::Named | Whom::Awaited => !self.observed.ends.is_empty(),
        };
        (!is_left).then_some(End::Gone)
    }

    /// Processes have begun to run the program that is waited for: with the first of them the recording begins.
    pub(super) fn meet_arrived(&mut self) {
        for pid in self.ingest.take_arrived() {
            if self.observed.pids.is_empty() {
                self.began = Began::now(self.began.own, &[pid]);
            }
            self.observed.pids.push(pid);
            self.account.add(pid);
            self.ingest.watch_queues_of(pid);
            self.observed.ends.extend(pidfd(pid).ok());
            self.assisted.iter_mut().for_each(|assisted| assisted.follow(pid));
        }
    }

    /// Has processes followed that have come into the cgroup, where what is measured goes by processes. Events are the cgroup's anyway.
    pub(super) fn meet_joined(&mut self) {
        let (Attachment::Cgroup(cgroup), Some(assisted)) = (&self.ground.attachment, &mut self.assisted)
        else {
            return;
        };
        if self.observed.child.is_none() && assisted.off_cpu().is_some() {
            self.observed.joiners.look(cgroup).into_iter().for_each(|pid| assisted.follow(pid));
        }
    }

    /// Whether it still waits for a process to begin.
    pub fn is_waiting(&self) -> bool {
        self.observed.whom == Whom::Awaited && self.observed.pids.is_empty()
    }
}
