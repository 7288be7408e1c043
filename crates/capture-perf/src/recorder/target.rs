//! The end of a recording: by a signal, with its command, or when the observed processes have ended.

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

/// The processes that a recording of running processes follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// The given processes; without any, the recording has no end of its own.
    Named,
    /// The given processes and all their descendants.
    Descendants,
    /// Processes that start a program.
    Awaited,
}

/// The target, and the conditions that end its recording.
pub(super) struct Observed {
    pub signals: Signals,
    pub policy: SignalPolicy,
    pub child: Option<Child>,
    /// Name of the command, if the target is one.
    pub command: Option<String>,
    pub exited: Option<(ExitStatus, CpuTime)>,
    /// Descriptors that become readable when the recorded processes end.
    pub ends: Vec<OwnedFd>,
    pub pids: Vec<u32>,
    /// Processes that join an existing cgroup.
    joiners: Joiners,
    whom: Whom,
}

impl Observed {
    /// Holds a command before its first instruction, or finds the running processes.
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

    /// Starts to watch for the end of the processes.
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

    /// A notice for the user if Ctrl-C did not end the command; each only once.
    pub fn notice(&mut self) -> Option<Notice> {
        self.observed.policy.notice(Instant::now())
    }

    fn reap(&mut self) -> Option<End> {
        // Before it is reaped, the kernel still has its run-queue wait.
        self.ingest.processes().look_at_queues(true);
        let exited = self.observed.child?.try_wait().ok()??;
        self.observed.exited = Some(exited);
        Some(End::Exited(exited.0))
    }

    /// Removes ended processes; returns an end if none is left.
    pub(super) fn heed_ends(&mut self, gone: &[bool]) -> Option<End> {
        if self.observed.child.is_some() {
            // SIGCHLD shows it too, unless another thread of the program takes the signal.
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
            // An ended process stays a zombie until its parent reaps it.
            return self.observed.ends.is_empty().then_some(End::Gone);
        }
        // Without pidfds (before kernel 5.3), /proc is polled.
        let all_gone =
            self.observed.ends.is_empty() && !self.observed.pids.iter().any(|&pid| procfs::exists(pid));
        all_gone.then_some(End::Gone)
    }

    /// Handles ended processes; returns an end if none is left that matters.
    fn heed_gone(&mut self, gone: &[bool]) -> Option<End> {
        let mut gone = gone.iter();
        self.observed.ends.retain(|_| !gone.next().copied().unwrap_or(false));
        // Processes that were forked, or have started, are in the records.
        self.read(monotonic_ns());
        self.meet_arrived();
        let is_left = match self.observed.whom {
            Whom::Descendants => self.ingest.followed().any(procfs::is_alive),
            Whom::Named | Whom::Awaited => !self.observed.ends.is_empty(),
        };
        (!is_left).then_some(End::Gone)
    }

    /// Handles processes that have started the awaited program: the first one starts the recording.
    pub(super) fn meet_arrived(&mut self) {
        for pid in self.ingest.processes().take_arrived() {
            if self.observed.pids.is_empty() {
                self.began = Began::now(self.began.own, &[pid]);
            }
            self.observed.pids.push(pid);
            self.account.add(pid);
            self.ingest.processes().watch_queues_of(pid);
            self.observed.ends.extend(pidfd(pid).ok());
            self.unwinder.iter_mut().for_each(|unwinder| unwinder.follow(pid));
        }
    }

    /// Follows processes that have joined the cgroup, if measurements are per process. Events are attached to the cgroup anyway.
    pub(super) fn meet_joined(&mut self) {
        let (Attachment::Cgroup(cgroup), Some(unwinder)) = (&self.ground.attachment, &mut self.unwinder)
        else {
            return;
        };
        if self.observed.child.is_none() && unwinder.measure().is_some() {
            self.observed.joiners.look(cgroup).into_iter().for_each(|pid| unwinder.follow(pid));
        }
    }

    /// Whether it still waits for a process to start.
    pub fn is_waiting(&self) -> bool {
        self.observed.whom == Whom::Awaited && self.observed.pids.is_empty()
    }
}
