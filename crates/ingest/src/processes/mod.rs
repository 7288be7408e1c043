//! The state of every process: tasks, parents, mappings, lifetimes.
//!
//! Derived from records, in order of time, and from /proc where records are missing. Elsewhere: samples and their stacks.

mod accounts;
mod lives;
mod queues;
mod records;
mod scope;
mod tasks;

pub(crate) use tasks::{Name, Thread};

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use plumb_process::{Backing, FileKey, FileOffset, MapLine, Vma, parse_maps};
use plumb_profile::{ProcessId, Profile, Queued, ThreadId};
use rustc_hash::FxHashMap;

use crate::spaces::{AddressSpaces, SpaceId};
use crate::{Filter, Source};
use lives::Lives;
use queues::Queues;
use scope::Scope;
use tasks::Tasks;

/// Most re-reads of a process' mappings, if some are missing.
const MAX_REFRESHES: u8 = 8;
/// PID and TID in perf's records of a task that has been reaped already.
const REAPED: u32 = u32::MAX;

/// All processes, with their threads and address spaces.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) scope: Scope,
    pub(crate) tasks: Tasks,
    pub(crate) spaces: AddressSpaces,
    pub(crate) lives: Lives,
    /// Run-queue waits of threads. `None`: not measured.
    queues: Option<Queues>,
    exits: Exits,
}

/// Tasks that have exited.
#[derive(Debug, Default)]
struct Exits {
    /// By CPU, the process and thread that last exited there.
    last: FxHashMap<u32, (u32, u32)>,
    /// Processes and threads that exited recently, and whether the thread was the last of its process.
    lately: VecDeque<(u32, u32, bool)>,
}

impl Processes {
    pub(crate) fn new(source: Source, filter: &Filter) -> Self {
        let mut tasks = Tasks::default();
        tasks.rename(0, 0, Name::new(b"swapper"));
        Self {
            scope: Scope::new(source, filter),
            tasks,
            spaces: AddressSpaces::new(source),
            lives: Lives::default(),
            queues: None,
            exits: Exits::default(),
        }
    }

    /// The process and thread of a sample on a CPU, noted if new; `None` if the filter excludes it.
    pub(crate) fn task_of(
        &mut self,
        profile: &mut Profile,
        (mut pid, mut tid): (u32, u32),
        cpu: u32,
    ) -> Option<(u32, u32)> {
        if pid == REAPED {
            // The end of an exit, after the task has lost its ID: it is the last one that exited on this CPU.
            (pid, tid) = *self.exits.last.get(&cpu)?;
        }
        self.meet_process(profile, pid);
        if !self.scope.wants(pid) {
            return None;
        }
        self.meet_thread_of(pid, tid);
        Some((pid, tid))
    }

    /// The row of a sampled thread, with its process' mappings and lifetime.
    pub(crate) fn note_sample(&mut self, profile: &mut Profile, pid: u32, tid: u32) -> ThreadId {
        let (thread, process) = self.tasks.rows(profile, tid);
        if let Some(space) = self.tasks.space(pid) {
            self.spaces.note_used(profile, space, process);
        }
        lives::note_sample(&self.scope, &mut self.tasks, profile, pid, process);
        thread
    }

    /// The row of a thread that is inspected once, which creates no lifetime.
    pub(crate) fn note_stopped(&mut self, profile: &mut Profile, pid: u32, tid: u32) -> ThreadId {
        let (thread, process) = self.tasks.rows(profile, tid);
        if let Some(space) = self.tasks.space(pid) {
            self.spaces.note_used(profile, space, process);
        }
        thread
    }

    /// Removes information on processes that had ended by `now_ns` from the profile.
    pub(crate) fn forget_ended(&mut self, profile: &mut Profile, now_ns: u64) {
        let running = self.lives.forget_ended(&self.tasks, profile, now_ns);
        self.spaces.retain_noted(&running);
    }

    /// Forgets all rows of the profile so far. Returns the rows that running processes had.
    pub(crate) fn forget_rows(&mut self) -> HashSet<ProcessId> {
        let running = self.tasks.forget_rows();
        self.lives.accounts.forget();
        self.spaces.forget_rows();
        running
    }

    /// Notes a process, unless it is known from a record.
    pub(crate) fn meet_process(&mut self, profile: &mut Profile, pid: u32) {
        if self.tasks.processes.contains_key(&pid) {
            return;
        }
        if self.scope.is_live() && pid != 0 {
            let is_tree = self.scope.is_tree;
            if is_tree && plumb_process::parent(pid).is_some_and(|parent| self.scope.follows(parent)) {
                self.scope.follow(pid);
            }
            if self.scope.wants(pid) {
                self.read_process(profile, pid);
            }
        }
        self.tasks.processes.entry(pid).or_default();
    }

    /// Reads names, parents and mappings of a running process and its threads from /proc, if permitted.
    pub(crate) fn read_process(&mut self, profile: &mut Profile, pid: u32) {
        if self.scope.is_live() {
            self.meet(pid);
            self.read_mappings(profile, pid);
        }
    }

    /// As [`Processes::read_process`], without its mappings.
    pub(crate) fn meet(&mut self, pid: u32) {
        let process = self.tasks.processes.entry(pid).or_default();
        process.parent = plumb_process::parent(pid).unwrap_or(0);
        process.executable = plumb_process::executable(pid).unwrap_or_default().into();
        let threads = plumb_process::threads(pid);
        process.threads = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        threads.into_iter().for_each(|tid| self.meet_thread(pid, tid));
    }

    /// Notes a thread of a process, unless it is known.
    pub(crate) fn meet_thread_of(&mut self, pid: u32, tid: u32) {
        if self.tasks.threads.get(&tid).is_none_or(|thread| thread.pid != pid) {
            self.meet_thread(pid, tid);
        }
    }

    /// Reads the name of a thread without a record; if that fails, the main thread's name is used.
    fn meet_thread(&mut self, pid: u32, tid: u32) {
        let told = match self.scope.is_live() && pid != 0 {
            true => plumb_process::comm(pid, tid).map(|text| Name::new(&text)),
            false => None,
        };
        let name = told.or_else(|| Some(self.tasks.threads.get(&pid)?.name)).unwrap_or_default();
        self.tasks.rename(pid, tid, name);
    }

    /// Reads the mappings of a running process again, because a sample has an address outside of all of them: a
    /// record was lost. Returns whether that was done; the number of re-reads is limited.
    pub(crate) fn refresh(&mut self, profile: &mut Profile, pid: u32) -> bool {
        let Some(process) = self.tasks.processes.get_mut(&pid) else { return false };
        if !self.scope.is_live() || process.just_exec || process.refreshed >= MAX_REFRESHES {
            return false;
        }
        process.refreshed += 1;
        self.read_mappings(profile, pid)
    }

    fn read_mappings(&mut self, profile: &mut Profile, pid: u32) -> bool {
        let Some(text) = plumb_process::mappings(pid) else { return false };
        self.map_text(profile, pid, &text);
        true
    }

    /// Adds the mappings in the text of a maps file.
    pub(crate) fn map_text(&mut self, profile: &mut Profile, pid: u32, text: &[u8]) {
        let lines: Vec<MapLine<'_>> = parse_maps(text).collect();
        for line in lines.iter().filter(|line| line.executable) {
            self.map(profile, pid, line.start..line.end, (line.offset, FileKey::of_line(line)), Some(&lines));
        }
    }

    /// Handles a mapping of code from a file, at an offset. `lines`: all mappings of the process, if they were read.
    fn map(
        &mut self,
        profile: &mut Profile,
        pid: u32,
        range: Range<u64>,
        (offset, key): (u64, FileKey),
        lines: Option<&[MapLine<'_>]>,
    ) {
        let parent = self.tasks.processes.get(&pid).map_or(0, |process| process.parent);
        let (backing, is_program) = self.spaces.backing((pid, parent), &range, key);
        let mut space = self.space_of(pid);
        let mapping = Vma { start: range.start, end: range.end, offset: FileOffset(offset), backing };
        for part in self.spaces.with_copied_text((pid, parent), space, mapping, lines) {
            space = self.spaces.map(space, pid, part);
        }
        let process = self.tasks.processes.entry(pid).or_default();
        process.space = Some(space);
        // After an exec the program itself is mapped first, then its loader.
        if process.executable.is_empty()
            && let Some(path) = is_program
        {
            self.tasks.set_executable(profile, pid, &path);
            lives::set_executable(&self.tasks, profile, pid, &path);
        }
        let executable = self.tasks.executable(pid);
        self.spaces.note_mapped_interpreter((pid, Some(space)), &executable, &mapping);
    }

    fn space_of(&mut self, pid: u32) -> SpaceId {
        let process = self.tasks.processes.entry(pid).or_default();
        *process.space.get_or_insert_with(|| self.spaces.create(pid))
    }

    /// The file or memory mapped at an address of a process.
    pub(crate) fn mapped_at(&mut self, profile: &mut Profile, pid: u32, address: u64) -> Option<Backing> {
        if self.scope.is_live() && !self.tasks.processes.contains_key(&pid) {
            self.read_process(profile, pid);
        }
        let space = self.tasks.space(pid)?;
        if self.spaces.find(space, address).is_none() {
            self.refresh(profile, pid);
        }
        let space = self.tasks.space(pid)?;
        let mapping = *self.spaces.find(space, address)?;
        if let Backing::File(id) = mapping.backing {
            self.spaces.look_for_interpreter(id, &self.tasks.executable(pid));
        }
        Some(mapping.backing)
    }
}

/// Run-queue waits of threads.
impl Processes {
    /// Starts to measure run-queue waits: of threads that are kept now, and of those they start.
    pub(crate) fn watch_queues(&mut self) {
        if self.scope.is_live() {
            self.queues = Some(Queues::listen());
            self.watch_running(|_| true);
        }
    }

    /// Starts to measure those of a process that is kept from now on.
    pub(crate) fn watch_queues_of(&mut self, pid: u32) {
        self.watch_running(|of| of == pid);
    }

    fn watch_running(&mut self, is_meant: impl Fn(u32) -> bool) {
        let Some(queues) = &mut self.queues else { return };
        for (&tid, thread) in &self.tasks.threads {
            let pid = thread.pid;
            if is_meant(pid) && !thread.exited && pid != 0 && self.scope.wants(pid) {
                queues.watch(pid, tid);
            }
        }
    }

    /// Reads the times of all threads again, if due or `now`.
    pub(crate) fn look_at_queues(&mut self, now: bool) {
        self.queues.iter_mut().for_each(|queues| queues.look(now));
    }

    /// All run-queue waits up to a time. `None`: they were not measured, or the kernel doesn't report them.
    pub(crate) fn queued(&self, end_ns: u64) -> Option<Queued> {
        self.queues.as_ref()?.sums(&self.tasks, end_ns)
    }
}
