//! The lives of processes, from the records of forks, execs and exits: also of those that no sample ever hits.
//!
//! Lives of processes that ran before the recording are noted once something happens to them: a sample, a fork, an
//! exit. A command's first moments, between the recorder's fork and its exec, are a life only if a sample hits them.

use plumb_profile::{Begin, End, Life, LifeId, ProcessId};

use rustc_hash::FxHashSet;

use super::tasks::Name;
use super::{Ingest, Source};

/// How far up parents are looked for: ids in a damaged file may form circles.
const MAX_PARENTS: usize = 64;
/// Time between two looks at how much memory processes that fork have. A look takes some 30 µs.
const LOOK_PAUSE_NS: u64 = 100_000_000;
/// The same for one process.
const LOOK_AGAIN_NS: u64 = 100_000_000;

/// A life's account comes no later than this after its end.
const SETTLE_NS: u64 = 2_000_000_000;

/// When was looked at memory last, in the time of records.
#[derive(Debug, Default)]
pub(super) struct Looks {
    any_ns: u64,
}

impl Ingest {
    /// A process was forked.
    pub(super) fn begin_fork(&mut self, parent: u32, pid: u32, time_ns: Option<u64>) {
        if !self.wants(pid) {
            return;
        }
        let parent_life = match self.wants(parent) {
            true => {
                self.meet_process(parent);
                self.life_of(parent)
            }
            false => None,
        };
        let comm = match parent_life {
            // Not the name of the thread that happened to fork.
            Some(life) => self.profile.lives[life].comm,
            None => self.name_of(pid),
        };
        self.push_life(pid, parent_life, comm, Begin::Fork, time_ns);
        self.look_at_memory(parent, time_ns);
    }

    /// A process has exec'd; `name` is its new one.
    pub(super) fn begin_exec(&mut self, pid: u32, name: Name, time_ns: Option<u64>) {
        if !self.wants(pid) {
            return;
        }
        let Some(process) = self.tasks.processes.get_mut(&pid) else { return };
        let (parent, old) = (process.parent, process.life.take());
        let parent_life = match old {
            Some(old) => {
                self.tasks.accounts.exec(pid, old);
                let old = self.profile.lives.get_mut(old);
                if self.source == Source::Live && parent == std::process::id() && old.begin == Begin::Running
                {
                    // The recorder forked it before it began to record, only to exec.
                    old.begin = Begin::Fork;
                }
                (old.end, old.end_ns) = (End::Exec, time_ns);
                old.parent
            }
            None if self.tasks.processes.contains_key(&parent) && self.wants(parent) => self.life_of(parent),
            None => None,
        };
        let comm = self.profile.strings.add(&name.text());
        self.push_life(pid, parent_life, comm, Begin::Exec, time_ns);
    }

    /// The last thread of a process has exited.
    pub(super) fn end_life(&mut self, pid: u32, time_ns: Option<u64>) {
        if !self.wants(pid) {
            return;
        }
        if let Some(life) = self.life_of(pid) {
            self.tasks.accounts.exit(pid, life);
            let life = self.profile.lives.get_mut(life);
            (life.end, life.end_ns) = (End::Exit, time_ns);
        }
    }

    /// The number of a process belongs to another one from now on. If no record told of its end, it was lost.
    pub(super) fn end_unseen_life(&mut self, life: Option<LifeId>, time_ns: Option<u64>) {
        if let Some(life) = life.and_then(|life| self.profile.lives.find_mut(life))
            && life.end == End::Running
        {
            (life.end, life.end_ns) = (End::Exit, time_ns);
        }
    }

    /// A sample hit a process: its life points at the row that samples point at.
    pub(super) fn note_life(&mut self, pid: u32, row: ProcessId) {
        if pid != 0
            && let Some(life) = self.life_of(pid)
        {
            let process = &mut self.profile.lives.get_mut(life).process;
            if process.is_none() {
                *process = Some(row);
            }
        }
    }

    /// Takes out of the profile what is known of processes that have ended, and is kept elsewhere by now: their lives and mappings. What
    /// the kernel may still tell of a life comes milliseconds after its end.
    pub fn forget_ended(&mut self) {
        let of_running: FxHashSet<LifeId> =
            self.tasks.processes.values().filter_map(|process| process.life).collect();
        let now_ns = self.now_ns;
        self.profile.lives.retain(|id, life| {
            let is_late = life.end_ns.is_some_and(|end| end.saturating_add(SETTLE_NS) > now_ns);
            life.end == End::Running || is_late || of_running.contains(&id)
        });
        let lives = &self.profile.lives;
        self.tasks.accounts.retain(|life| lives.get(life).is_some());
        let running: FxHashSet<ProcessId> =
            self.tasks.processes.values().filter_map(|process| process.row).collect();
        self.profile.mappings.retain(|mapping| running.contains(&mapping.process));
        self.profile.mappings.shrink_to_fit();
        self.noted.retain(|process, _| running.contains(process));
        self.noted.shrink_to_fit();
    }

    /// The executable of a process has become known.
    pub(super) fn name_life(&mut self, pid: u32, path: &[u8]) {
        if let Some(life) = self.tasks.processes.get(&pid).and_then(|process| process.life) {
            self.profile.lives.get_mut(life).exe = self.profile.strings.add(&String::from_utf8_lossy(path));
        }
    }

    /// The life of a process, noted now if it ran before the recording, and its ancestors' with it.
    fn life_of(&mut self, pid: u32) -> Option<LifeId> {
        let mut missing = Vec::new();
        let mut at = pid;
        let mut parent = None;
        while missing.len() < MAX_PARENTS && at != 0 && !missing.contains(&at) && self.wants(at) {
            let Some(process) = self.tasks.processes.get(&at) else { break };
            if process.life.is_some() {
                parent = process.life;
                break;
            }
            missing.push(at);
            at = process.parent;
        }
        // A parent's row comes before its children's.
        for pid in missing.into_iter().rev() {
            let comm = self.name_of(pid);
            parent = Some(self.push_life(pid, parent, comm, Begin::Running, None));
        }
        parent
    }

    fn push_life(
        &mut self,
        pid: u32,
        parent: Option<LifeId>,
        comm: plumb_profile::StringId,
        begin: Begin,
        start_ns: Option<u64>,
    ) -> LifeId {
        let process = self.tasks.processes.entry(pid).or_default();
        let exe = self.profile.strings.add(&String::from_utf8_lossy(&process.executable));
        let life = self.profile.lives.push(Life {
            pid,
            parent,
            exe,
            comm,
            begin,
            end: End::Running,
            start_ns,
            end_ns: None,
            cpu_ns: None,
            peak_rss_bytes: None,
            process: process.row,
        });
        process.life = Some(life);
        life
    }

    fn name_of(&mut self, pid: u32) -> plumb_profile::StringId {
        let name = self.tasks.threads.get(&pid).map(|thread| thread.name).unwrap_or_default();
        self.profile.strings.add(&name.text())
    }

    /// Reads how much memory a process that forks has, unless that was done lately.
    fn look_at_memory(&mut self, pid: u32, time_ns: Option<u64>) {
        let Some(now) = time_ns.filter(|_| self.source == Source::Live) else { return };
        let Some(process) = self.tasks.processes.get_mut(&pid) else { return };
        let Some(life) = process.life else { return };
        let again_ns = process.looked_ns.map_or(0, |last| last.saturating_add(LOOK_AGAIN_NS));
        if now < self.looks.any_ns.saturating_add(LOOK_PAUSE_NS) || now < again_ns {
            return;
        }
        self.looks.any_ns = now;
        process.looked_ns = Some(now);
        let peak = plumb_process::peak_rss(pid);
        // The record is of a while ago: the process may run another program by now.
        if plumb_process::executable(pid).is_some_and(|path| path == *process.executable) {
            let known = &mut self.profile.lives.get_mut(life).peak_rss_bytes;
            *known = peak.max(*known);
        }
    }
}
