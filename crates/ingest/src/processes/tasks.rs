//! Processes and threads: their starts, names and ends, and the rows of the profile that they get.
//!
//! A row is created by the first sample, so that the many tasks without samples cost nothing.

use std::collections::HashSet;
use std::rc::Rc;

use plumb_profile::{LifeId, Process as ProcessRow, ProcessId, Profile, Thread as ThreadRow, ThreadId};
use rustc_hash::FxHashMap;

use crate::spaces::SpaceId;
use crate::stacks::ThreadStacks;

/// A process between two execs.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    /// Path of the executable; empty if unknown so far.
    pub(crate) executable: Rc<[u8]>,
    /// Address space. `None` for kernel threads and after its exit.
    pub(crate) space: Option<SpaceId>,
    /// Whether it has exec'd and no sample has shown the new program running yet.
    pub(crate) just_exec: bool,
    /// Number of threads known to run.
    pub(crate) threads: u32,
    /// Number of times that its mappings were read again because one was missing.
    pub(crate) refreshed: u8,
    pub(crate) row: Option<ProcessId>,
    /// Row of its lifetime.
    pub(crate) life: Option<LifeId>,
    /// Last read of its memory size, in record time.
    pub(crate) looked_ns: Option<u64>,
}

/// A thread under one name.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) pid: u32,
    pub(crate) name: Name,
    /// State of its stacks.
    pub(crate) stacks: ThreadStacks,
    pub(crate) exited: bool,
    pub(crate) row: Option<ThreadId>,
}

impl Process {
    /// Whether the saved user registers of a sample, whose user stack is truncated if `is_cut`, belong to a program that an exec
    /// has already replaced: no sample has shown the new program yet, neither in user mode nor with a user stack that `is_new`: one
    /// that leads to a root in the new mappings, or to a return probe. See `stacks::thread` for the other sign.
    pub(crate) fn is_old_image(&mut self, in_kernel: bool, is_new: bool, is_cut: bool) -> bool {
        if !self.just_exec {
            return false;
        }
        if !in_kernel || is_new {
            self.just_exec = false;
            return false;
        }
        is_cut
    }
}

/// The kernel's name of a thread, at most 15 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; 15],
    length: u8,
}

impl Name {
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut name = Name::default();
        let length = text.len().min(name.bytes.len());
        name.bytes[..length].copy_from_slice(&text[..length]);
        name.length = length as u8;
        name
    }

    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)])
    }
}

/// All processes and threads.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) processes: FxHashMap<u32, Process>,
    pub(crate) threads: FxHashMap<u32, Thread>,
}

impl Tasks {
    /// The address space of a process.
    pub(crate) fn space(&self, pid: u32) -> Option<SpaceId> {
        self.processes.get(&pid)?.space
    }

    /// The path of a process' executable; empty if unknown.
    pub(crate) fn executable(&self, pid: u32) -> Rc<[u8]> {
        self.processes.get(&pid).map(|process| Rc::clone(&process.executable)).unwrap_or_default()
    }

    /// The current rows of a thread and its process, created if necessary.
    pub(crate) fn rows(&mut self, profile: &mut Profile, tid: u32) -> (ThreadId, ProcessId) {
        let thread = self.threads.entry(tid).or_default();
        let process = self.processes.entry(thread.pid).or_default();
        let process_row = *process.row.get_or_insert_with(|| {
            let exe = profile.strings.add(&String::from_utf8_lossy(&process.executable));
            profile.processes.push(ProcessRow { pid: thread.pid, ppid: process.parent, exe })
        });
        let thread_row = *thread.row.get_or_insert_with(|| {
            let comm = profile.strings.add(&thread.name.text());
            profile.threads.push(ThreadRow { process: process_row, tid, comm })
        });
        (thread_row, process_row)
    }

    /// Forgets all rows of tasks, and their frames. Returns the rows that processes had.
    pub(crate) fn forget_rows(&mut self) -> HashSet<ProcessId> {
        for thread in self.threads.values_mut() {
            thread.row = None;
            thread.stacks.forget_frames();
            thread.stacks.forget_samples();
        }
        let forget = |process: &mut Process| {
            process.life = None;
            process.row.take()
        };
        self.processes.values_mut().filter_map(forget).collect()
    }

    /// Finds the rows of tasks in an earlier profile: the last ones with the same IDs and names.
    pub(crate) fn find_rows(&mut self, profile: &Profile) {
        for (id, row) in profile.processes.iter() {
            if let Some(process) = self.processes.get_mut(&row.pid)
                && process.parent == row.ppid
                && profile.strings.get(row.exe) == String::from_utf8_lossy(&process.executable)
            {
                process.row = Some(id);
            }
        }
        for (id, row) in profile.threads.iter() {
            if let Some(thread) = self.threads.get_mut(&row.tid)
                && self.processes.get(&thread.pid).is_some_and(|process| process.row == Some(row.process))
                && profile.strings.get(row.comm) == thread.name.text()
            {
                thread.row = Some(id);
            }
        }
    }

    /// Changes a thread's name.
    pub(crate) fn rename(&mut self, pid: u32, tid: u32, name: Name) {
        let thread = self.threads.entry(tid).or_default();
        if thread.pid != pid || thread.name != name {
            thread.row = None;
        }
        thread.pid = pid;
        thread.name = name;
    }

    /// The thread that continues as the main thread of its process, which has exec'd after the main thread had exited: no record names it again.
    pub(crate) fn takes_over(&self, pid: u32) -> Option<u32> {
        if self.threads.get(&pid).is_some_and(|first| !first.exited) {
            return None;
        }
        let mut threads = self.threads.iter().filter(|&(&tid, thread)| tid != pid && thread.pid == pid);
        threads.find(|(_, thread)| !thread.exited).map(|(&tid, _)| tid)
    }

    /// Starts a new lifetime of a process: later samples get new rows.
    pub(crate) fn begin_life(&mut self, pid: u32, tid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.row = None;
            process.executable = Rc::default();
            process.threads = 1;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.row = None;
            thread.stacks.forget_frames();
        }
    }

    /// Sets the executable of a process, also in its row, if any.
    pub(crate) fn set_executable(&mut self, profile: &mut Profile, pid: u32, path: &[u8]) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.executable = path.into();
        if let Some(row) = process.row {
            profile.processes.get_mut(row).exe = profile.strings.add(&String::from_utf8_lossy(path));
        }
    }

    /// Handles the end of a thread: its state is freed, its row stays for the work that the kernel still does on its behalf. Returns
    /// whether its process has ended too.
    pub(crate) fn exit(&mut self, pid: u32, tid: u32) -> bool {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.stacks.forget_frames();
            thread.exited = true;
        }
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        // Without a record of the process' start, its number of threads is unknown.
        let was_known = process.threads > 0;
        process.threads = process.threads.saturating_sub(1);
        process.threads == 0 && (was_known || pid == tid)
    }
}
