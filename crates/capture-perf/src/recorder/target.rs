//! The target of a recording, and its end: by a signal, with its command, or when the observed processes have ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Instant;

use plumb_ingest::Ingest;
use plumb_process::usage::CpuTime;
use plumb_process::{pidfd, procfs};
use plumb_profile::Scope;
use plumb_target::begin::{hold, pids_of};
use plumb_target::signals::Signals;
use plumb_target::{Child, Descendants, End, Heeded, Held, Joiners, Notice, Running, SignalPolicy, Target};

use crate::account::Account;
use crate::error::Error;
use crate::events::{Attachment, EventContext};
use crate::options::SamplingOptions;

/// The processes that a recording of running processes follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    /// The given processes; without any, the recording has no end of its own.
    Named,
    /// The given processes and all their descendants.
    Descendants,
    /// Processes that start a program.
    Awaited,
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

/// The consequence of ended processes.
#[derive(Debug)]
pub(super) enum Ended {
    /// None: the recording goes on.
    GoesOn,
    /// The recording ends.
    All(End),
    /// [`RecordedTarget::is_left`] decides, once all records so far are read.
    Some,
}

/// The target, its CPU time, and the conditions that end its recording.
pub struct RecordedTarget {
    context: Arc<EventContext>,
    account: Account,
    signals: Signals,
    policy: SignalPolicy,
    pub(super) child: Option<Child>,
    /// Name of the command, if the target is one.
    command: Option<String>,
    exited: Option<(ExitStatus, CpuTime)>,
    /// Descriptors that become readable when the recorded processes end.
    ends: Vec<OwnedFd>,
    pids: Vec<u32>,
    /// Processes that join an existing cgroup.
    joiners: Joiners,
    whom: Whom,
}

/// A target that was found, before anything is attached to it.
pub(super) struct FoundTarget {
    pub pids: Vec<u32>,
    signals: Signals,
}

impl FoundTarget {
    /// Holds a command before its first instruction, or finds the running processes.
    pub fn hold(target: &Target, options: &SamplingOptions) -> Result<(Self, Option<Held>), Error> {
        let signals = if options.heeds_signals { Signals::watch() } else { Signals::none() };
        let signals = signals.map_err(Error::system("watching for signals"))?;
        let held = match target {
            Target::Command(launch) => Some(hold(launch, &options.prints, &signals)?),
            _ => None,
        };
        Ok((Self { pids: pids_of(target, held.as_ref()), signals }, held))
    }
}

impl RecordedTarget {
    /// The processes that the recording follows.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Whether the recording still waits for a process to start.
    pub fn is_waiting(&self) -> bool {
        self.whom == Whom::Awaited && self.pids.is_empty()
    }

    /// A notice for the user if Ctrl-C did not end the command; each only once.
    pub fn notice(&mut self) -> Option<Notice> {
        self.policy.notice(Instant::now())
    }

    /// CPU time of the target so far, if known.
    pub fn cpu_time(&mut self) -> Option<CpuTime> {
        self.account.look();
        match (&self.context.attachment, self.exited) {
            (Attachment::Cgroup(cgroup), exited) => cgroup.cpu_time().or(exited.map(|(_, time)| time)),
            (_, Some((_, time))) => Some(time),
            (_, None) => self.account.used(),
        }
    }

    /// Watches for the end of a target that was found, and opens its account.
    pub(super) fn watch(
        found: FoundTarget,
        target: &Target,
        (context, account): (Arc<EventContext>, Account),
    ) -> Self {
        let FoundTarget { pids, signals } = found;
        Self {
            context,
            account,
            signals,
            policy: SignalPolicy::default(),
            child: None,
            command: target.command_name(),
            exited: None,
            ends: pids.iter().filter_map(|&pid| pidfd(pid).ok()).collect(),
            pids,
            joiners: Joiners::default(),
            whom: Whom::of(target),
        }
    }

    /// Opens the account of a running target again.
    pub(super) fn begin_account(&mut self, target: &Target) {
        self.account = Account::open(&self.context.attachment, target, &self.pids);
    }

    /// Reads the account, so that of a process which ends little is missed.
    pub(super) fn look_at_account(&mut self) {
        self.account.look();
    }

    /// Whether processes that nobody waited for, or that ended between two readings, are missing in the CPU time.
    pub(super) fn account_has_gaps(&self) -> bool {
        matches!(self.account, Account::Processes(_) | Account::Command(_))
    }

    /// Descriptors that become readable when a signal came, and when a process ended, in the order in which
    /// [`heed_ends`](Self::heed_ends) asks for them.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.signals.as_fd()).chain(self.ends.iter().map(AsFd::as_fd))
    }

    /// Number of processes whose end a descriptor shows.
    pub(super) fn watched(&self) -> usize {
        self.ends.len()
    }

    /// Handles signals; returns an end if one of them ends the recording.
    pub(super) fn heed_signals(&mut self, ingest: &mut Ingest) -> Option<End> {
        let running = self.child.filter(|_| self.exited.is_none());
        while let Some(heeded) = self.policy.heed(&self.signals, running) {
            match (self.reap(ingest), heeded) {
                (Some(end), _) => return Some(end),
                (None, Heeded::Reap) => {}
                (None, Heeded::End(number)) => return Some(End::Signal(number)),
            }
        }
        self.policy.overdue(Instant::now()).map(End::Signal)
    }

    fn reap(&mut self, ingest: &mut Ingest) -> Option<End> {
        // Before it is reaped, the kernel still has its run-queue wait.
        ingest.processes().look_at_queues(true);
        let exited = self.child?.try_wait().ok()??;
        self.exited = Some(exited);
        Some(End::Exited(exited.0))
    }

    /// Removes ended processes. `gone`: whether each of the watched ones has ended.
    pub(super) fn heed_ends(&mut self, ingest: &mut Ingest, gone: &[bool]) -> Ended {
        let has_gone = gone.contains(&true);
        let all_if = |is_gone: bool| if is_gone { Ended::All(End::Gone) } else { Ended::GoesOn };
        if self.child.is_some() {
            // SIGCHLD shows it too, unless another thread of the program takes the signal.
            let end = if has_gone { self.reap(ingest) } else { None };
            return end.map_or(Ended::GoesOn, Ended::All);
        }
        if let Attachment::Cgroup(cgroup) = &self.context.attachment {
            return all_if(cgroup.is_gone());
        }
        if self.pids.is_empty() {
            return Ended::GoesOn;
        }
        let asks_records = self.whom != Whom::Named && (has_gone || self.ends.is_empty());
        if asks_records || has_gone {
            let mut gone = gone.iter();
            self.ends.retain(|_| !gone.next().copied().unwrap_or(false));
            // An ended process stays a zombie until its parent reaps it.
            return if asks_records { Ended::Some } else { all_if(self.ends.is_empty()) };
        }
        // Without pidfds (before kernel 5.3), /proc is polled.
        all_if(self.ends.is_empty() && !self.pids.iter().any(|&pid| procfs::exists(pid)))
    }

    /// Whether a process is left that matters. Processes that were forked, or have started, are in the records.
    pub(super) fn is_left(&self, ingest: &Ingest) -> bool {
        match self.whom {
            Whom::Descendants => ingest.followed().any(procfs::is_alive),
            Whom::Named | Whom::Awaited => !self.ends.is_empty(),
        }
    }

    /// Adds a process that has started the awaited program. Returns whether it is the first.
    pub(super) fn add(&mut self, pid: u32) -> bool {
        let is_first = self.pids.is_empty();
        self.pids.push(pid);
        self.account.add(pid);
        self.ends.extend(pidfd(pid).ok());
        is_first
    }

    /// Processes that have joined an existing cgroup since the last call.
    pub(super) fn joined(&mut self) -> Vec<u32> {
        match &self.context.attachment {
            Attachment::Cgroup(cgroup) if self.child.is_none() => self.joiners.look(cgroup),
            _ => Vec::new(),
        }
    }

    /// Whether the events count only the target.
    pub(super) fn is_counted_alone(&self, scope: Scope) -> bool {
        match self.context.attachment {
            Attachment::Cgroup(_) | Attachment::Processes(_) => true,
            Attachment::Everyone => scope == Scope::System,
        }
    }

    /// A command that outlives its recording.
    pub(super) fn running(&self) -> Option<Running> {
        self.child.filter(|_| self.exited.is_none()).map(Running)
    }

    /// Running descendants of a command that has ended itself.
    pub(super) fn descendants(&self, ingest: &Ingest) -> Descendants {
        let Some(name) = self.command.clone().filter(|_| self.exited.is_some()) else {
            return Descendants::default();
        };
        let pids = match &self.context.attachment {
            Attachment::Cgroup(cgroup) => cgroup.pids(),
            Attachment::Everyone | Attachment::Processes(_) => ingest.followed().collect(),
        };
        Descendants::new(name, pids).staying()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child as Process, Command};

    use plumb_ingest::{Filter, Source};
    use plumb_process::Program;

    use super::*;
    use crate::events::Rings;

    /// A target that is not recorded.
    fn target(target: &Target, pids: Vec<u32>) -> (RecordedTarget, Ingest) {
        let (rings, _) = Rings::map(&[], false).expect("no ring is needed");
        let attachment = Attachment::Everyone;
        let account = Account::open(&attachment, target, &pids);
        let context = Arc::new(EventContext { rings, attachment });
        let signals = Signals::none().expect("none are watched");
        let watched = RecordedTarget::watch(FoundTarget { pids, signals }, target, (context, account));
        (watched, Ingest::new(Source::Live, Filter::All))
    }

    fn sleeping() -> Process {
        Command::new("sleep").arg("60").spawn().expect("sleep can be started")
    }

    fn end(mut process: Process) {
        process.kill().and_then(|()| process.wait()).expect("it can be ended");
    }

    #[test]
    fn a_recording_of_processes_ends_with_the_last_one() {
        let (one, other) = (sleeping(), sleeping());
        let pids = vec![one.id(), other.id()];
        let (mut target, mut ingest) = target(&Target::Processes(pids.clone()), pids);
        assert!(matches!(target.heed_ends(&mut ingest, &[false, false]), Ended::GoesOn));
        end(one);
        assert!(matches!(target.heed_ends(&mut ingest, &[true, false]), Ended::GoesOn));
        assert_eq!(target.watched(), 1);
        end(other);
        assert!(matches!(target.heed_ends(&mut ingest, &[true]), Ended::All(End::Gone)));
    }

    #[test]
    fn an_awaited_program_is_waited_for_and_may_start_again() {
        let awaited = Target::Awaited(Program::new(b"sleep"));
        let (mut target, mut ingest) = target(&awaited, Vec::new());
        assert!(target.is_waiting());
        assert!(matches!(target.heed_ends(&mut ingest, &[]), Ended::GoesOn), "none has started");
        let (one, other) = (sleeping(), sleeping());
        assert!(target.add(one.id()), "the first one starts the recording");
        assert!(!target.is_waiting() && !target.add(other.id()));
        end(one);
        assert!(
            matches!(target.heed_ends(&mut ingest, &[true, false]), Ended::Some),
            "records may name more"
        );
        assert!(target.is_left(&ingest));
        end(other);
        assert!(matches!(target.heed_ends(&mut ingest, &[true]), Ended::Some));
        assert!(!target.is_left(&ingest));
    }
}
