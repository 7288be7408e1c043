//! Processes and threads as they come, change their names and go, and the rows of the profile that they get.
//!
//! A row is made by the first sample, so that the many tasks that are never sampled cost nothing.

use std::rc::Rc;

use plumb_capture_api::Script;
use plumb_profile::{LifeId, Process as ProcessRow, ProcessId, Profile, Thread as ThreadRow, ThreadId};
use rustc_hash::FxHashMap;

use super::exec::Pending;
use super::intern::LastStack;
use super::queues::Queues;
use super::sideband::SidebandQueue;
use super::spaces::SpaceId;
use super::spent::Accounts;
use super::stitch::Stitcher;

/// A process between two execs.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) parent: u32,
    /// Path of the executable; empty if not known, or not yet.
    pub(super) executable: Rc<[u8]>,
    /// Its memory. `None` for kernel threads and after its exit.
    pub(super) space: Option<SpaceId>,
    /// It has exec'd, and no sample has shown the new image at work yet.
    pub(super) just_exec: bool,
    /// Threads known to run.
    pub(super) threads: u32,
    /// How often its mappings were read again because one was missing.
    pub(super) refreshed: u8,
    pub(super) row: Option<ProcessId>,
    /// Its row among the lives.
    pub(super) life: Option<LifeId>,
    /// When was looked at its memory last, in the time of records.
    pub(super) looked_ns: Option<u64>,
}

/// A thread under one name.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) name: Name,
    /// The stack of the last sample.
    pub(super) last: LastStack,
    /// What is remembered of the stack beyond copies, once one was too short.
    pub(super) stitcher: Option<Box<Stitcher>>,
    /// Samples since the last one with a readable stack that an exec may explain, see `exec`.
    pub(super) pending: Vec<Pending>,
    pub(super) exited: bool,
    /// When its live stack was read last, see `live`.
    pub(super) tried_ns: u64,
    pub(super) row: Option<ThreadId>,
}

/// The kernel's name of a thread, at most 15 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    bytes: [u8; 15],
    length: u8,
}

impl Name {
    pub(super) fn new(text: &[u8]) -> Self {
        let mut name = Name::default();
        let length = text.len().min(name.bytes.len());
        name.bytes[..length].copy_from_slice(&text[..length]);
        name.length = length as u8;
        name
    }

    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[..usize::from(self.length)])
    }
}

/// All processes and threads.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) processes: FxHashMap<u32, Process>,
    pub(super) threads: FxHashMap<u32, Thread>,
    /// The system calls that samples interrupted of which records are to come.
    pub(super) calls: SidebandQueue<Option<u32>>,
    /// Likewise their frames of an interpreted program.
    pub(super) scripts: SidebandQueue<Script>,
    /// Processor time of lives that is still to be told.
    pub(super) accounts: Accounts,
    /// `None`: it is not looked at how long threads wait for a processor.
    pub(super) queues: Option<Queues>,
}

impl Tasks {
    /// The current row of a thread and its process, made if there is none.
    pub(super) fn rows(&mut self, profile: &mut Profile, tid: u32) -> (ThreadId, ProcessId) {
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

    /// Gives a thread a name.
    pub(super) fn rename(&mut self, pid: u32, tid: u32, name: Name) {
        let thread = self.threads.entry(tid).or_default();
        if thread.pid != pid || thread.name != name {
            thread.row = None;
        }
        thread.pid = pid;
        thread.name = name;
    }

    /// Begins a new life of a process: later samples get new rows.
    pub(super) fn begin_life(&mut self, pid: u32, tid: u32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.row = None;
            process.executable = Rc::default();
            process.threads = 1;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.row = None;
            thread.last = LastStack::default();
            thread.stitcher = None;
        }
    }

    /// Sets the executable of a process, also in the row that it may have already.
    pub(super) fn set_executable(&mut self, profile: &mut Profile, pid: u32, path: &[u8]) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.executable = path.into();
        if let Some(row) = process.row {
            profile.processes.get_mut(row).exe = profile.strings.add(&String::from_utf8_lossy(path));
        }
    }

    /// A thread has gone: its memory is freed, its row stays for what the kernel still does on its behalf. Returns
    /// whether its process has gone with it.
    pub(super) fn exit(&mut self, pid: u32, tid: u32) -> bool {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.last = LastStack::default();
            thread.stitcher = None;
            thread.exited = true;
        }
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        // Of processes that no record told of it is not known how many threads they have.
        let was_known = process.threads > 0;
        process.threads = process.threads.saturating_sub(1);
        process.threads == 0 && (was_known || pid == tid)
    }
}
