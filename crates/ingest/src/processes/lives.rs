//! Process lifetimes, from the records of forks, execs and exits: including processes without samples.
//!
//! The lifetime of a process that ran before the recording is noted at its first event: a sample, a fork, an
//! exit. A command's first moments, between the recorder's fork and its exec, get a lifetime only if they have a sample.

use plumb_profile::{Begin, Life, LifeEnd, LifeId, ProcessId, Profile, StringId};
use rustc_hash::FxHashSet;

use super::accounts::Accounts;
use super::scope::Scope;
use super::tasks::{Name, Tasks};

/// Most ancestors that are followed: IDs in a damaged file may form cycles.
const MAX_PARENTS: usize = 64;
/// Time between two reads of the memory size of forking processes. A read takes some 30 µs.
const LOOK_PAUSE_NS: u64 = 100_000_000;
/// Time between two reads for the same process.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// The final CPU time of a process comes at most this long after its end.
const SETTLE_NS: u64 = 2_000_000_000;

/// State of lifetimes besides their rows in the profile.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// CPU times that are still to come.
    pub(crate) accounts: Accounts,
    /// Last read of any process' memory size, in record time.
    looked_ns: u64,
}

impl Lives {
    /// Starts the lifetime of a forked process. Its parent, if recorded, is known.
    pub(crate) fn begin_fork(
        &mut self,
        (scope, tasks): (&Scope, &mut Tasks),
        profile: &mut Profile,
        (parent, pid): (u32, u32),
        time_ns: Option<u64>,
    ) {
        let parent_life = if scope.wants(parent) { life_of(scope, tasks, profile, parent) } else { None };
        let comm = match parent_life {
            // Taken from the process, not from the thread that happened to fork.
            Some(life) => profile.lives[life].comm,
            None => name_of(tasks, profile, pid),
        };
        push_life(tasks, profile, (pid, parent_life, comm), Begin::Fork, time_ns);
        self.look_at_memory(scope, tasks, profile, (parent, time_ns));
    }

    /// Starts a new lifetime at an exec; `name` is the new name.
    pub(crate) fn begin_exec(
        &mut self,
        (scope, tasks): (&Scope, &mut Tasks),
        profile: &mut Profile,
        (pid, name): (u32, Name),
        time_ns: Option<u64>,
    ) {
        if !scope.wants(pid) {
            return;
        }
        let Some(process) = tasks.processes.get_mut(&pid) else { return };
        let (parent, old) = (process.parent, process.life.take());
        let parent_life = match old {
            Some(old) => {
                self.accounts.exec(pid, old);
                let old = profile.lives.get_mut(old);
                if scope.is_live() && parent == std::process::id() && old.begin == Begin::Running {
                    // The recorder forked it before the recording started, only to exec.
                    old.begin = Begin::Fork;
                }
                (old.end, old.end_ns) = (LifeEnd::Exec, time_ns);
                old.parent
            }
            None if tasks.processes.contains_key(&parent) && scope.wants(parent) => {
                life_of(scope, tasks, profile, parent)
            }
            None => None,
        };
        let comm = profile.strings.add(&name.text());
        push_life(tasks, profile, (pid, parent_life, comm), Begin::Exec, time_ns);
    }

    /// Ends the lifetime of a process, whose last thread has exited.
    pub(crate) fn end(
        &mut self,
        (scope, tasks): (&Scope, &mut Tasks),
        profile: &mut Profile,
        pid: u32,
        time_ns: Option<u64>,
    ) {
        if !scope.wants(pid) {
            return;
        }
        if let Some(life) = life_of(scope, tasks, profile, pid) {
            self.accounts.exit(pid, life);
            let life = profile.lives.get_mut(life);
            (life.end, life.end_ns) = (LifeEnd::Exit, time_ns);
        }
    }

    /// Removes lifetimes and mappings of processes that had ended by `now_ns` from the profile; the caller has stored them
    /// elsewhere. Late reports from the kernel come milliseconds after the end. Returns the rows of running processes.
    pub(crate) fn forget_ended(
        &mut self,
        tasks: &Tasks,
        profile: &mut Profile,
        now_ns: u64,
    ) -> FxHashSet<ProcessId> {
        let of_running: FxHashSet<LifeId> =
            tasks.processes.values().filter_map(|process| process.life).collect();
        profile.lives.retain(|id, life| {
            let is_late = life.end_ns.is_some_and(|end| end.saturating_add(SETTLE_NS) > now_ns);
            life.end == LifeEnd::Running || is_late || of_running.contains(&id)
        });
        let lives = &profile.lives;
        self.accounts.retain(|life| lives.get(life).is_some());
        let running: FxHashSet<ProcessId> =
            tasks.processes.values().filter_map(|process| process.row).collect();
        profile.mappings.retain(|mapping| running.contains(&mapping.process));
        profile.mappings.shrink_to_fit();
        running
    }

    /// Reads the memory size of a forking process, unless that was done recently.
    fn look_at_memory(
        &mut self,
        scope: &Scope,
        tasks: &mut Tasks,
        profile: &mut Profile,
        (pid, time_ns): (u32, Option<u64>),
    ) {
        let Some(now) = time_ns.filter(|_| scope.is_live()) else { return };
        let Some(process) = tasks.processes.get_mut(&pid) else { return };
        let Some(life) = process.life else { return };
        let again_ns = process.looked_ns.map_or(0, |last| last.saturating_add(LOOK_AGAIN_NS));
        if now < self.looked_ns.saturating_add(LOOK_PAUSE_NS) || now < again_ns {
            return;
        }
        self.looked_ns = now;
        process.looked_ns = Some(now);
        let peak = plumb_process::peak_rss(pid);
        // The record is from a while ago: the process may run another program by now.
        if plumb_process::executable(pid).is_some_and(|path| path == *process.executable) {
            let known = &mut profile.lives.get_mut(life).peak_rss_bytes;
            *known = peak.max(*known);
        }
    }
}

/// Ends a lifetime because its process ID belongs to another process from now on. Without a record of its end, that was lost.
pub(crate) fn end_unseen(profile: &mut Profile, life: Option<LifeId>, time_ns: Option<u64>) {
    if let Some(life) = life.and_then(|life| profile.lives.find_mut(life))
        && life.end == LifeEnd::Running
    {
        (life.end, life.end_ns) = (LifeEnd::Exit, time_ns);
    }
}

/// Notes that a process has a sample: its lifetime refers to the row that samples refer to.
pub(crate) fn note_sample(scope: &Scope, tasks: &mut Tasks, profile: &mut Profile, pid: u32, row: ProcessId) {
    if pid != 0
        && let Some(life) = life_of(scope, tasks, profile, pid)
    {
        let process = &mut profile.lives.get_mut(life).process;
        if process.is_none() {
            *process = Some(row);
        }
    }
}

/// Sets the executable of a process once it is known.
pub(crate) fn set_executable(tasks: &Tasks, profile: &mut Profile, pid: u32, path: &[u8]) {
    if let Some(life) = tasks.processes.get(&pid).and_then(|process| process.life) {
        profile.lives.get_mut(life).exe = profile.strings.add(&String::from_utf8_lossy(path));
    }
}

/// The lifetime of a process, created with its ancestors' if it ran before the recording.
fn life_of(scope: &Scope, tasks: &mut Tasks, profile: &mut Profile, pid: u32) -> Option<LifeId> {
    let mut missing = Vec::new();
    let mut at = pid;
    let mut parent = None;
    while missing.len() < MAX_PARENTS && at != 0 && !missing.contains(&at) && scope.wants(at) {
        let Some(process) = tasks.processes.get(&at) else { break };
        if process.life.is_some() {
            parent = process.life;
            break;
        }
        missing.push(at);
        at = process.parent;
    }
    // A parent's row precedes its children's.
    for pid in missing.into_iter().rev() {
        let comm = name_of(tasks, profile, pid);
        parent = Some(push_life(tasks, profile, (pid, parent, comm), Begin::Running, None));
    }
    parent
}

fn push_life(
    tasks: &mut Tasks,
    profile: &mut Profile,
    (pid, parent, comm): (u32, Option<LifeId>, StringId),
    begin: Begin,
    start_ns: Option<u64>,
) -> LifeId {
    let process = tasks.processes.entry(pid).or_default();
    let exe = profile.strings.add(&String::from_utf8_lossy(&process.executable));
    let life = profile.lives.push(Life {
        pid,
        parent,
        exe,
        comm,
        begin,
        end: LifeEnd::Running,
        start_ns,
        end_ns: None,
        cpu_ns: None,
        peak_rss_bytes: None,
        process: process.row,
    });
    process.life = Some(life);
    life
}

fn name_of(tasks: &Tasks, profile: &mut Profile, pid: u32) -> StringId {
    let name = tasks.threads.get(&pid).map(|thread| thread.name).unwrap_or_default();
    profile.strings.add(&name.text())
}
