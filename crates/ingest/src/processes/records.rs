//! Handles records of processes, threads and mappings.

use plumb_process::{Device, FileKey};
use plumb_profile::Profile;

use super::tasks::{Name, Process, Thread};
use super::{Processes, lives};
use crate::perf_records::{self, FileMark};

/// Most exited tasks that are kept, for samples of their last moments.
const REMEMBERED_EXITS: usize = 64;

impl Processes {
    /// A thread was renamed, or its process has exec'd.
    pub(crate) fn comm(
        &mut self,
        profile: &mut Profile,
        comm: &perf_records::Comm<'_>,
        is_exec: bool,
        time_ns: Option<u64>,
    ) {
        let name = Name::new(comm.name);
        if is_exec {
            self.take_over(comm.pid);
            self.exec(comm.pid, comm.tid);
            self.scope.meet_comm(comm.pid, comm.name);
        }
        self.tasks.rename(comm.pid, comm.tid, name);
        if is_exec {
            let known = (&self.scope, &mut self.tasks);
            self.lives.begin_exec(known, profile, (comm.pid, name), time_ns);
        }
    }

    /// A thread that has exec'd becomes the main thread (de_thread in fs/exec.c).
    fn take_over(&mut self, pid: u32) {
        let Some(tid) = self.tasks.takes_over(pid) else { return };
        if let Some(thread) = self.tasks.threads.remove(&tid) {
            self.tasks.threads.insert(pid, thread);
        }
        self.queues.iter_mut().for_each(|queues| queues.renumber(tid, pid));
        // The others have exited, and most of their CPU times are still to come.
        let of_process = self.exits.lately.iter().filter(|&&(of, ..)| of == pid);
        let life = self.tasks.processes.get(&pid).and_then(|process| process.life);
        self.lives.accounts.replaced((pid, tid), of_process.map(|&(_, tid, _)| tid), life);
    }

    /// Drops all of the old program: memory, other threads, name of the executable.
    fn exec(&mut self, pid: u32, tid: u32) {
        let process = self.tasks.processes.entry(pid).or_default();
        if let Some(old) = process.space.take() {
            self.spaces.release(old);
        }
        process.space = Some(self.spaces.create(pid));
        process.just_exec = true;
        self.tasks.begin_life(pid, tid);
    }

    /// A process or thread was forked. `is_synthetic`: the recorder made the record for a running process; its mappings
    /// follow.
    pub(crate) fn fork(
        &mut self,
        profile: &mut Profile,
        fork: &perf_records::Task,
        is_synthetic: bool,
        time_ns: Option<u64>,
    ) {
        let name = self.tasks.threads.get(&fork.ptid).map(|parent| parent.name);
        let child = Thread { pid: fork.pid, name: name.unwrap_or_default(), ..Thread::default() };
        self.tasks.threads.insert(fork.tid, child);
        if fork.pid == fork.ppid {
            let process = self.tasks.processes.entry(fork.pid).or_default();
            process.threads = process.threads.saturating_add(1);
            self.begin_queueing(fork.pid, fork.tid, time_ns);
            return;
        }
        self.scope.fork(fork.ppid, fork.pid);
        self.fork_process(profile, fork, is_synthetic, time_ns);
        if is_synthetic {
            return;
        }
        self.begin_queueing(fork.pid, fork.tid, time_ns);
        if self.scope.wants(fork.pid) {
            if self.scope.wants(fork.ppid) {
                self.meet_process(profile, fork.ppid);
            }
            let known = (&self.scope, &mut self.tasks);
            self.lives.begin_fork(known, profile, (fork.ppid, fork.pid), time_ns);
        }
    }

    /// The child has its parent's memory and program.
    fn fork_process(
        &mut self,
        profile: &mut Profile,
        fork: &perf_records::Task,
        is_synthetic: bool,
        time_ns: Option<u64>,
    ) {
        let parent = self.tasks.processes.get(&fork.ppid);
        // A process that ran before may have exec'd since: its mappings will show that.
        let executable =
            parent.filter(|_| !is_synthetic).map(|parent| parent.executable.clone()).unwrap_or_default();
        let inherited = parent.and_then(|parent| parent.space).filter(|_| !is_synthetic);
        let space = match inherited {
            Some(space) => self.spaces.share(space),
            None => self.spaces.create(fork.pid),
        };
        let child =
            Process { parent: fork.ppid, executable, space: Some(space), threads: 1, ..Process::default() };
        if let Some(old) = self.tasks.processes.insert(fork.pid, child) {
            lives::end_unseen(profile, old.life, time_ns);
            if let Some(space) = old.space {
                self.spaces.release(space);
            }
        }
    }

    fn begin_queueing(&mut self, pid: u32, tid: u32, time_ns: Option<u64>) {
        let Some(time_ns) = time_ns.filter(|_| self.scope.wants(pid)) else { return };
        if let Some(queues) = &mut self.queues {
            queues.begin(pid, tid, time_ns);
        }
    }

    /// A thread has exited.
    pub(crate) fn exit(
        &mut self,
        profile: &mut Profile,
        exit: &perf_records::Task,
        cpu: Option<u32>,
        time_ns: Option<u64>,
    ) {
        if let Some(cpu) = cpu {
            self.exits.last.insert(cpu, (exit.pid, exit.tid));
        }
        if let Some(queues) = &mut self.queues {
            queues.end(&self.tasks, exit.tid, time_ns);
        }
        let process_gone = self.tasks.exit(exit.pid, exit.tid);
        if process_gone {
            self.lives.end((&self.scope, &mut self.tasks), profile, exit.pid, time_ns);
        }
        self.exits.lately.push_back((exit.pid, exit.tid, process_gone));
        // Since Linux 6.16, the record comes before the memory is freed: the thread may still be sampled for a while.
        if self.exits.lately.len() > REMEMBERED_EXITS
            && let Some((pid, tid, process_gone)) = self.exits.lately.pop_front()
        {
            self.forget(pid, tid, process_gone);
        }
    }

    /// Frees the state of a task, unless its IDs were reused since.
    fn forget(&mut self, pid: u32, tid: u32, process_gone: bool) {
        if self.tasks.threads.get(&tid).is_some_and(|thread| thread.exited) {
            self.tasks.threads.remove(&tid);
        }
        if process_gone
            && self.tasks.processes.get(&pid).is_some_and(|process| process.threads == 0)
            && let Some(space) = self.tasks.processes.remove(&pid).and_then(|process| process.space)
        {
            self.spaces.release(space);
        }
    }

    /// A process has mapped a file or memory.
    pub(crate) fn mmap(&mut self, profile: &mut Profile, mmap: &perf_records::Mmap<'_>) {
        if !mmap.executable {
            return;
        }
        // After an exec, the first mapping is the program.
        if self.tasks.processes.get(&mmap.pid).is_some_and(|p| p.just_exec && p.executable.is_empty()) {
            self.scope.meet_executable(mmap.pid, mmap.path);
        }
        if !self.scope.wants(mmap.pid) {
            return;
        }
        let mut key = FileKey::of_path(mmap.path);
        match mmap.mark {
            FileMark::Absent => {}
            FileMark::BuildId(id) => key.build_id = Some(id.into()),
            FileMark::Inode { major, minor, inode, generation } => {
                key.device = Some(Device { major, minor });
                (key.inode, key.generation) = (inode, generation);
            }
        }
        self.map(profile, mmap.pid, mmap.range(), (mmap.offset, key), None);
    }
}
