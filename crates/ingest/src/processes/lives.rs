//! The lives of processes, from the records of forks, execs and exits: also of those that no sample ever hits.
//!
//! Lives of processes that ran before the recording are noted once something happens to them: a sample, a fork, an
//! exit. A command's first moments, between the recorder's fork and its exec, are a life only if a sample hits them.

use plumb_profile::{Begin, Life, LifeEnd, LifeId, ProcessId, Profile, StringId};
use rustc_hash::FxHashSet;

use super::accounts::Accounts;
use super::scope::Scope;
use super::tasks::{Name, Tasks};

/// How far up parents are looked for: ids in a damaged file may form circles.
const MAX_PARENTS: usize = 64;
/// Time between two looks at how much memory processes that fork have. A look takes some 30 µs.
const LOOK_PAUSE_NS: u64 = 100_000_000;
/// The same for one process.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// A life's account comes no later than this after its end.
const SETTLE_NS: u64 = 2_000_000_000;

/// What is remembered of lives beside their rows in the profile.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// Processor time that is still to be told.
    pub(crate) accounts: Accounts,
    /// When the memory of any process was looked at last, in the time of records.
    looked_ns: u64,
}

impl Lives {
    /// A process was forked. Its parent, if it is recorded, is known.
    pub(crate) fn begin_fork(
        &mut self,
        (scope, tasks): (&Scope, &mut Tasks),
        profile: &mut Profile,
        (parent, pid): (u32, u32),
        time_ns: Option<u64>,
    ) {
        let parent_life = if scope.wants(parent) { life_of(scope, tasks, profile, parent) } else { None };
        let comm = match parent_life {
            // Not the name of the thread that happened to fork.
            Some(life) => profile.lives[life].comm,
            None => name_of(tasks, profile, pid),
        };
        push_life(tasks, profile, (pid, parent_life, comm), Begin::Fork, time_ns);
        self.look_at_memory(scope, tasks, profile, (parent, time_ns));
    }

    /// A process has exec'd; `name` is its new one.
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
                    // The recorder forked it before it began to record, only to exec.
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

    /// The last thread of a process has exited.
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

    /// Takes out of the profile what is known of processes that had ended by `now_ns`, and is kept elsewhere by now: their lives and
    /// mappings. What the kernel may still tell of a life comes milliseconds after its end. Returns the rows of those that run.
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

    /// Reads how much memory a process that forks has, unless that was done lately.
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
        // The record is of a while ago: the process may run another program by now.
        if plumb_process::executable(pid).is_some_and(|path| path == *process.executable) {
            let known = &mut profile.lives.get_mut(life).peak_rss_bytes;
            *known = peak.max(*known);
        }
    }
}

/// The number of a process belongs to another one from now on. If no record told of its end, it was lost.
pub(crate) fn end_unseen(profile: &mut Profile, life: Option<LifeId>, time_ns: Option<u64>) {
    if let Some(life) = life.and_then(|life| profile.lives.find_mut(life))
        && life.end == LifeEnd::Running
    {
        (life.end, life.end_ns) = (LifeEnd::Exit, time_ns);
    }
}

/// A sample hit a process: its life points at the row that samples point at.
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

/// The executable of a process has become known.
pub(crate) fn set_executable(tasks: &Tasks, profile: &mut Profile, pid: u32, path: &[u8]) {
    if let Some(life) = tasks.processes.get(&pid).and_then(|process| process.life) {
        profile.lives.get_mut(life).exe = profile.strings.add(&String::from_utf8_lossy(path));
    }
}

/// The life of a process, noted now if it ran before the recording, and its ancestors' with it.
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
    // A parent's row comes before its children's.
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
