//! CPU time of process lifetimes, from the kernel's report on each task at its exec and at its end.
//!
//! A task is freed some milliseconds after its exit, when its process may be forgotten. Lifetimes that began before the
//! recording get no CPU time, as the part before it is unknown. A thread's time counts for the lifetime in
//! which it ends.

use plumb_profile::{Begin, LifeEnd, LifeId, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

use super::tasks::Tasks;

/// State of the accounting.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// For processes that exec'd: CPU time of their main thread up to then.
    before_exec: FxHashMap<u32, u64>,
    /// Lifetimes ended by an exec, whose CPU time follows.
    execs: FxHashMap<u32, LifeId>,
    /// Ended lifetimes, until their main thread is freed.
    ended: FxHashMap<u32, LifeId>,
    /// Threads that ended before another one of their process exec'd, until they are freed: the lifetime in which they ended, and their CPU time
    /// before it. By process and thread; the main thread has the ID of the one that exec'd (exchange_tids in kernel/pid.c).
    replaced: FxHashMap<(u32, u32), (LifeId, u64)>,
    /// Processes whose main thread was freed before the record of the exec by which another thread took over its ID.
    freed_early: FxHashSet<u32>,
}

impl Accounts {
    /// Handles an exec of a process, which ends this lifetime.
    pub(crate) fn exec(&mut self, pid: u32, life: LifeId) {
        self.execs.insert(pid, life);
    }

    /// Handles an exec by a thread other than the main thread, which ends this lifetime and the other threads.
    pub(crate) fn replaced(
        &mut self,
        (pid, tid): (u32, u32),
        ended: impl Iterator<Item = u32>,
        life: Option<LifeId>,
    ) {
        let was_freed = self.freed_early.remove(&pid);
        let before = if was_freed { 0 } else { self.before_exec.remove(&pid).unwrap_or(0) };
        let Some(life) = life else { return };
        if !was_freed {
            self.replaced.insert((pid, tid), (life, before));
        }
        ended.filter(|&tid| tid != pid).for_each(|tid| _ = self.replaced.insert((pid, tid), (life, 0)));
    }

    /// Handles the exit of a process' last thread.
    pub(crate) fn exit(&mut self, pid: u32, life: LifeId) {
        self.ended.insert(pid, life);
    }

    /// Only existing lifetimes matter.
    pub(crate) fn retain(&mut self, is_there: impl Fn(LifeId) -> bool) {
        self.execs.retain(|_, life| is_there(*life));
        self.ended.retain(|_, life| is_there(*life));
        self.replaced.retain(|_, (life, _)| is_there(*life));
    }

    /// Forgets all lifetimes.
    pub(crate) fn forget(&mut self) {
        self.execs.clear();
        self.ended.clear();
        self.replaced.clear();
        self.freed_early.clear();
    }

    /// Adds the CPU time of a task since its fork; the task has just exec'd or ended.
    pub(crate) fn spent(
        &mut self,
        tasks: &Tasks,
        profile: &mut Profile,
        (pid, tid): (u32, u32),
        (runtime_ns, at_exec): (u64, bool),
    ) {
        let replaced = self.replaced.remove(&(pid, tid));
        let before = match replaced {
            Some((_, before)) => Some(before),
            None if tid == pid => self.before_exec.remove(&pid),
            // A thread without an end record: it has the ID of the one that execs, whose record is still to come.
            None if tasks.threads.get(&tid).is_some_and(|thread| thread.pid == pid && !thread.exited) => {
                self.freed_early.insert(pid);
                self.before_exec.remove(&pid)
            }
            None => None,
        };
        let life = if let Some((life, _)) = replaced {
            Some(life)
        } else if at_exec {
            self.before_exec.insert(pid, runtime_ns);
            self.execs.remove(&pid)
        } else {
            let ended = match tid == pid {
                true => self.ended.remove(&pid),
                false => self.ended.get(&pid).copied(),
            };
            ended.or_else(|| tasks.processes.get(&pid)?.life)
        };
        if let Some(life) = life.and_then(|life| profile.lives.find_mut(life))
            && life.begin != Begin::Running
        {
            let used = runtime_ns.saturating_sub(before.unwrap_or(0));
            life.cpu_ns = Some(life.cpu_ns.unwrap_or(0).saturating_add(used));
        }
    }

    /// Number of ended lifetimes whose CPU time is still to come.
    pub(crate) fn open(&self) -> usize {
        self.ended.len()
    }

    /// Removes CPU times that cover only some threads.
    pub(crate) fn drop_parts(&self, profile: &mut Profile) {
        let open = |life: &plumb_profile::Life| life.end == LifeEnd::Running;
        let ids: Vec<LifeId> =
            profile.lives.iter().filter(|(_, life)| open(life)).map(|(id, _)| id).collect();
        for id in ids.into_iter().chain(self.ended.values().copied()) {
            profile.lives.get_mut(id).cpu_ns = None;
        }
    }
}
