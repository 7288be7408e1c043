//! Records that tell of processes, threads and mappings, and /proc where records are missing.

use std::collections::{HashMap, VecDeque};

use linux_perf_event_reader::constants as perf;
use plumb_process::{Backing, Device, FileKey, FileOffset, MapLine, Mapping, Place, parse_maps};
use rustc_hash::FxHashMap;

use super::spaces::SpaceId;
use super::tasks::{Name, Process, Thread};
use super::wire::{self, FileMark};
use super::{Filter, Ingest, Source};

/// Build ids by path, as a recording lists them.
pub(super) type BuildIds = HashMap<Box<[u8]>, Box<[u8]>>;

/// How many exited tasks are kept, for samples of their last moments.
const REMEMBERED_EXITS: usize = 64;
/// How often the mappings of a process are read again because some are missing.
const MAX_REFRESHES: u8 = 8;

/// Tasks that have exited.
#[derive(Debug, Default)]
pub(super) struct Exits {
    /// Per processor the process and thread that exited there last.
    pub(super) last: FxHashMap<u32, (u32, u32)>,
    /// Processes and threads that exited lately, and whether the thread was the last of its process.
    lately: VecDeque<(u32, u32, bool)>,
}

impl Ingest {
    pub(super) fn comm(&mut self, comm: &wire::Comm<'_>, is_exec: bool, time_ns: Option<u64>) {
        if is_exec {
            self.settle_pending(comm.tid);
            self.settle_cut(comm.tid);
            self.exec(comm.pid, comm.tid);
            self.meet_comm(comm.pid, comm.name);
        }
        self.tasks.rename(comm.pid, comm.tid, Name::new(comm.name));
        if is_exec {
            self.begin_exec(comm.pid, Name::new(comm.name), time_ns);
        }
    }

    /// All of the old program is gone: memory, other threads, name of the executable.
    fn exec(&mut self, pid: u32, tid: u32) {
        let process = self.tasks.processes.entry(pid).or_default();
        if let Some(old) = process.space.take() {
            self.spaces.release(old);
        }
        process.space = Some(self.spaces.create(pid));
        process.just_exec = true;
        self.tasks.begin_life(pid, tid);
    }

    /// `is_synthetic`: the recorder made the record up for a process that ran already; its mappings follow.
    pub(super) fn fork(&mut self, fork: &wire::Task, is_synthetic: bool, time_ns: Option<u64>) {
        let name = self.tasks.threads.get(&fork.ptid).map(|parent| parent.name);
        let child = Thread { pid: fork.pid, name: name.unwrap_or_default(), ..Thread::default() };
        self.tasks.threads.insert(fork.tid, child);
        if fork.pid == fork.ppid {
            let process = self.tasks.processes.entry(fork.pid).or_default();
            process.threads = process.threads.saturating_add(1);
            self.begin_queueing(fork.pid, fork.tid, time_ns);
            return;
        }
        self.tree.fork(fork.ppid, fork.pid);
        let parent = self.tasks.processes.get(&fork.ppid);
        // Of what ran before nobody knows whether it exec'd since: its mappings will tell.
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
            self.end_unseen_life(old.life, time_ns);
            if let Some(space) = old.space {
                self.spaces.release(space);
            }
        }
        if !is_synthetic {
            self.begin_queueing(fork.pid, fork.tid, time_ns);
            self.begin_fork(fork.ppid, fork.pid, time_ns);
        }
    }

    pub(super) fn exit(&mut self, exit: &wire::Task, cpu: Option<u32>, time_ns: Option<u64>) {
        if let Some(cpu) = cpu {
            self.exits.last.insert(cpu, (exit.pid, exit.tid));
        }
        self.settle_cut(exit.tid);
        self.end_queueing(exit.tid, time_ns);
        let process_gone = self.tasks.exit(exit.pid, exit.tid);
        if process_gone {
            self.end_life(exit.pid, time_ns);
        }
        self.exits.lately.push_back((exit.pid, exit.tid, process_gone));
        // Since Linux 6.16 the record comes before the memory goes: it may still be sampled for a while.
        if self.exits.lately.len() > REMEMBERED_EXITS
            && let Some((pid, tid, process_gone)) = self.exits.lately.pop_front()
        {
            self.forget(pid, tid, process_gone);
        }
    }

    /// Frees what is kept of a task, unless its numbers were used again since.
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

    /// Reads the mappings of a running process again, because a sample has an address that is in none of them: a
    /// record was lost. Returns whether that was done; it is not done often.
    pub(super) fn refresh(&mut self, pid: u32) -> bool {
        let Some(process) = self.tasks.processes.get_mut(&pid) else { return false };
        if self.source != Source::Live || process.just_exec || process.refreshed >= MAX_REFRESHES {
            return false;
        }
        process.refreshed += 1;
        self.read_mappings(pid)
    }

    pub(super) fn mmap(&mut self, mmap: &wire::Mmap<'_>, misc: u16) {
        let range = mmap.start..mmap.start.saturating_add(mmap.length);
        let mode = misc & perf::PERF_RECORD_MISC_CPUMODE_MASK;
        if mmap.pid == u32::MAX || mode == perf::PERF_RECORD_MISC_KERNEL {
            // Of our own kernel /proc has told.
            if self.source == Source::File {
                self.kernel.map(range, &String::from_utf8_lossy(mmap.path));
            }
            return;
        }
        if !mmap.executable {
            return;
        }
        self.meet_executable(mmap.pid, mmap.path);
        if !self.wants(mmap.pid) {
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
        self.map(mmap.pid, range, mmap.offset, key);
    }

    /// Whether a process' mappings matter. Unknown ones may turn out to be descendants of a followed one.
    pub(super) fn wants(&self, pid: u32) -> bool {
        matches!(self.filter, Filter::All) || self.tree.follows(pid)
    }

    fn map(&mut self, pid: u32, range: std::ops::Range<u64>, offset: u64, key: FileKey) {
        let (backing, is_program) = self.backing(pid, &range, key);
        let space = self.space_of(pid);
        let mapping = Mapping { start: range.start, end: range.end, offset: FileOffset(offset), backing };
        self.note_remapped(pid, space, &mapping);
        let space = self.spaces.map(space, pid, mapping);
        let process = self.tasks.processes.entry(pid).or_default();
        process.space = Some(space);
        // After an exec the program itself is mapped first, then its loader.
        if process.executable.is_empty()
            && let Some(path) = is_program
        {
            self.tasks.set_executable(&mut self.profile, pid, &path);
            self.name_life(pid, &path);
        }
        self.look_for_interpreter(pid, &mapping);
    }

    /// What a mapping with this key is of, and its path if it is a file's.
    fn backing(
        &mut self,
        pid: u32,
        range: &std::ops::Range<u64>,
        mut key: FileKey,
    ) -> (Backing, Option<Box<[u8]>>) {
        match &*key.path {
            b"[vdso]" => return (Backing::Vdso, None),
            // Memory files hold what programs write themselves, as anonymous memory does.
            path if !path.starts_with(b"/") || is_memory(path) => return (Backing::Anonymous, None),
            _ => {}
        }
        let place = match self.source {
            Source::Live => {
                let parent = self.tasks.processes.get(&pid).map_or(0, |process| process.parent);
                Place::Process { pid, range: range.clone(), parent }
            }
            Source::File => {
                // Inodes of another machine, or of another day, say nothing about the files of today.
                (key.device, key.inode, key.generation) = (None, 0, 0);
                key.build_id = key.build_id.or_else(|| self.build_ids.get(&key.path).cloned());
                Place::Recorded
            }
        };
        let path = key.path.clone();
        (Backing::File(self.code.add(key, &place)), Some(path))
    }

    fn space_of(&mut self, pid: u32) -> SpaceId {
        let process = self.tasks.processes.entry(pid).or_default();
        *process.space.get_or_insert_with(|| self.spaces.create(pid))
    }

    /// Learns names, parents and mappings of a running process and its threads from /proc
    /// ([`Source::Live`] only): for processes that started before the recording.
    pub fn read_process(&mut self, pid: u32) {
        if self.source == Source::Live {
            self.meet(pid);
            self.read_mappings(pid);
        }
    }

    /// As [`Ingest::read_process`], but for its mappings.
    pub(super) fn meet(&mut self, pid: u32) {
        let process = self.tasks.processes.entry(pid).or_default();
        process.parent = plumb_process::parent(pid).unwrap_or(0);
        process.executable = plumb_process::executable(pid).unwrap_or_default().into();
        let threads = plumb_process::threads(pid);
        process.threads = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        threads.into_iter().for_each(|tid| self.meet_thread(pid, tid));
    }

    fn read_mappings(&mut self, pid: u32) -> bool {
        let Some(text) = plumb_process::mappings(pid) else { return false };
        self.map_text(pid, &text);
        true
    }

    /// Takes the mappings in the text of a maps file.
    pub(super) fn map_text(&mut self, pid: u32, text: &[u8]) {
        for line in parse_maps(text).filter(|line| line.executable) {
            self.map_line(pid, &line);
        }
    }

    fn map_line(&mut self, pid: u32, line: &MapLine<'_>) {
        let key = FileKey { device: Some(line.device), inode: line.inode, ..FileKey::of_path(line.path) };
        self.map(pid, line.start..line.end, line.offset, key);
    }

    /// [`Ingest::read_process`] for all that run.
    pub fn read_all_processes(&mut self) {
        if self.source == Source::Live {
            plumb_process::pids().into_iter().for_each(|pid| self.read_process(pid));
        }
    }

    /// Learns the name of a thread that no record told of; the main thread's will do if its own is not known.
    pub(super) fn meet_thread(&mut self, pid: u32, tid: u32) {
        let told = match self.source {
            Source::Live if pid != 0 => plumb_process::comm(pid, tid).map(|text| Name::new(&text)),
            _ => None,
        };
        let name = told.or_else(|| Some(self.tasks.threads.get(&pid)?.name)).unwrap_or_default();
        self.tasks.rename(pid, tid, name);
    }
}

fn is_memory(path: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"//anon", b"/memfd:", b"/dev/zero", b"/SYSV", b"/anon_hugepage"];
    names.iter().any(|name| path.starts_with(name))
}
