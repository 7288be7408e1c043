//! When a recording ends: by a signal, with its command, or when those that it goes by have gone.

use std::time::Instant;

use plumb_process::{pidfd, procfs, usage::monotonic_ns};
use plumb_target::{End, Heeded, Notice, Target};

use super::{Began, Recorder};
use crate::events::Attachment;

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

impl Whom {
    pub(super) fn of(target: &Target) -> Self {
        match target {
            Target::Tree(_) => Whom::Descendants,
            Target::Awaited(_) => Whom::Awaited,
            Target::Command(_) | Target::Processes(_) | Target::Cgroup(_) | Target::Machine => Whom::Named,
        }
    }
}

impl Recorder {
    pub(super) fn heed_signals(&mut self) -> Option<End> {
        let running = self.child.filter(|_| self.exited.is_none());
        while let Some(heeded) = self.steering.heed(&self.signals, running) {
            match (self.reap(), heeded) {
                (Some(end), _) => return Some(end),
                (None, Heeded::Reap) => {}
                (None, Heeded::End(number)) => return Some(End::Signal(number)),
            }
        }
        self.steering.overdue(Instant::now()).map(End::Signal)
    }

    /// What the user is to know of a command that a Ctrl-C didn't end; each only once.
    pub fn notice(&mut self) -> Option<Notice> {
        self.steering.notice(Instant::now())
    }

    fn reap(&mut self) -> Option<End> {
        // Until it is waited for, the kernel tells how long it waited for a processor.
        self.ingest.look_at_queues(true);
        let exited = self.child?.try_wait().ok()??;
        self.exited = Some(exited);
        Some(End::Exited(exited.0))
    }

    /// Forgets processes that have ended; an end if there is none left.
    pub(super) fn heed_ends(&mut self, gone: &[bool]) -> Option<End> {
        if self.child.is_some() {
            // SIGCHLD tells too, unless another thread of the program takes it.
            return if gone.contains(&true) { self.reap() } else { None };
        }
        if let Attachment::Cgroup(cgroup) = &self.ground.attachment {
            return cgroup.is_gone().then_some(End::Gone);
        }
        if self.pids.is_empty() {
            return None;
        }
        if self.whom != Whom::Named && (gone.contains(&true) || self.ends.is_empty()) {
            return self.heed_gone(gone);
        }
        if gone.contains(&true) {
            let mut gone = gone.iter();
            self.ends.retain(|_| !gone.next().copied().unwrap_or(false));
            // A process that has ended shows as a zombie until its parent takes notice.
            return self.ends.is_empty().then_some(End::Gone);
        }
        // Without pidfds (before kernel 5.3) the look at /proc does.
        let all_gone = self.ends.is_empty() && !self.pids.iter().any(|&pid| procfs::exists(pid));
        all_gone.then_some(End::Gone)
    }

    /// Some of those that the recording goes by have ended; an end if nobody is left who matters.
    fn heed_gone(&mut self, gone: &[bool]) -> Option<End> {
        let mut gone = gone.iter();
        self.ends.retain(|_| !gone.next().copied().unwrap_or(false));
        // Who was forked, or has begun, is in the records.
        self.read(monotonic_ns());
        self.meet_arrived();
        let is_left = match self.whom {
            Whom::Descendants => self.ingest.followed().any(procfs::is_alive),
            Whom::Named | Whom::Awaited => !self.ends.is_empty(),
        };
        (!is_left).then_some(End::Gone)
    }

    /// Processes have begun to run the program that is waited for: with the first of them the recording begins.
    pub(super) fn meet_arrived(&mut self) {
        for pid in self.ingest.take_arrived() {
            if self.pids.is_empty() {
                self.began = Began::now(self.began.own);
            }
            self.pids.push(pid);
            self.account.add(pid);
            self.ingest.watch_queues_of(pid);
            self.ends.extend(pidfd(pid).ok());
            self.assisted.iter_mut().for_each(|assisted| assisted.follow(pid));
        }
    }

    /// Whether it still waits for a process to begin.
    pub fn is_waiting(&self) -> bool {
        self.whom == Whom::Awaited && self.pids.is_empty()
    }
}
