//! What walks stacks in the kernel, as the recorder sees it.
//!
//! An [`Assistant`] is attached to the sampling events and keeps the samples that it can walk; all others come as records of
//! their own. Its messages are merged with the records by time, so that each meets the mappings of its moment.
//!
//! Not here: how it walks.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use plumb_interpreters::{CodeId, Root};
use plumb_profile::{EventId, StackId, ThreadId};
use plumb_unwind::Module;
use plumb_unwind::table::Table;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ingest::Ingest;
use crate::procfs;
use crate::shelf::Shelf;
use crate::sys::process::pidfd;

/// Something that walks stacks before they are copied.
pub trait Assistant {
    /// The program for the sampling events. It returns 0 for a sample that it keeps.
    fn program(&self) -> BorrowedFd<'_>;
    /// Becomes readable when there are messages to be taken soon.
    fn wakes(&self) -> BorrowedFd<'_>;
    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()>;
    /// From now on samples count. Before, it only says which files' code it wants, and no sample becomes a record.
    fn begin(&mut self) -> io::Result<()>;
    /// Keeps to processes that are followed, and follows any that execs a program and then has this name, from that moment on.
    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()>;
    /// Takes the messages that are there.
    fn take(&mut self, into: &mut Messages);
    /// Takes what was counted since the last time.
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted));
    /// Gives it the code of a file that it wants; `None`: it could not be found this time.
    fn supply(&mut self, file: u32, code: Option<Lent<'_>>);
    /// Something else was mapped over a mapping of this process.
    fn forget(&mut self, pid: u32);
    /// How many samples it walked, and why others were handed over.
    fn handed_over(&self) -> HandedOver;
}

/// Messages of an assistant.
#[derive(Debug, Default)]
pub struct Messages {
    /// The messages, in about the order of their time.
    pub list: Vec<Message>,
    /// The frames of all samples.
    pub frames: Vec<u64>,
    /// The frames of interpreted programs of all samples.
    pub script: Vec<ScriptPlace>,
}

/// A message of an assistant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A sample, walked.
    Sample(WalkedSample),
    /// It wants a file's code.
    Want {
        /// When.
        time_ns: u64,
        /// The process that has the file mapped.
        pid: u32,
        /// An address in it.
        address: u64,
        /// What the assistant calls the file.
        file: u32,
    },
    /// Memory that says what code of an interpreted program is called, as it was when the code was seen first.
    Code {
        /// When.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The code.
        code: CodeId,
        /// Stretches of memory with their addresses.
        memory: Vec<(u64, Vec<u8>)>,
    },
    /// How much processor time a task has used since it was forked.
    Spent {
        /// When.
        time_ns: u64,
        /// The process.
        pid: u32,
        /// The task.
        tid: u32,
        /// The time, as the scheduler accounts it.
        runtime_ns: u64,
        /// It has just exec'd; otherwise it has ended.
        at_exec: bool,
    },
}

impl Message {
    fn time_ns(&self) -> u64 {
        match self {
            Message::Sample(sample) => sample.time_ns,
            Message::Want { time_ns, .. }
            | Message::Code { time_ns, .. }
            | Message::Spent { time_ns, .. } => *time_ns,
        }
    }
}

/// A sample whose stack is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedSample {
    /// When, by the monotonic clock.
    pub time_ns: u64,
    /// Processor.
    pub cpu: u32,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Which of the sampled events it is of, by the number that its program was attached with.
    pub event: usize,
    /// What it counts.
    pub period: u64,
    /// Under which equal stacks of the thread are counted from now on; 0: they are not.
    pub key: u64,
    /// It was taken in the kernel.
    pub in_kernel: bool,
    /// The task has a user part.
    pub has_user: bool,
    /// User frames, innermost first, in [`Messages::frames`]; bit 63 marks those that are no return addresses, bit 62 those that
    /// are a round of an interpreter's loop of which there are script frames.
    pub user: Range<usize>,
    /// Kernel frames likewise, without marks: the first is no return address.
    pub kernel: Range<usize>,
    /// Frames of the interpreted program, innermost first, in [`Messages::script`].
    pub script: Range<usize>,
    /// There were more than could be sent.
    pub script_is_cut: bool,
}

/// Where a frame of an interpreted program was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptPlace {
    /// In which code.
    pub code: CodeId,
    /// At which instruction: so many bytes from where the code is.
    pub offset: u32,
    /// It is the last of its round of the interpreter's loop.
    pub is_entry: bool,
    /// It is a generator's.
    pub is_generator: bool,
}

/// The frames of a walked sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'a> {
    pub user: &'a [u64],
    pub kernel: &'a [u64],
    pub script: &'a [ScriptPlace],
}

/// A stack that was sent before, and counted since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// [`WalkedSample::key`].
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Samples since.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// When the last of them was.
    pub time_ns: u64,
}

/// A file's code.
#[derive(Debug)]
pub struct Lent<'a> {
    /// Its unwind information.
    pub module: &'a Module<Vec<u8>>,
    /// Its build id, if it has one.
    pub build_id: Option<Box<[u8]>>,
    /// What of the file is loaded as code.
    pub segments: Vec<CodeSegment>,
    /// The interpreter that is in it.
    pub interpreter: Option<Root>,
    pub(crate) shelf: Option<&'a RefCell<Shelf>>,
}

impl<'a> Lent<'a> {
    /// A file with no tables but those that are made of it.
    pub fn new(module: &'a Module<Vec<u8>>, build_id: Option<Box<[u8]>>, segments: Vec<CodeSegment>) -> Self {
        Self { module, build_id, segments, interpreter: None, shelf: None }
    }

    /// The table of all its rows; `None` if it has none. It may have been kept by an earlier recording, and is kept for
    /// later ones.
    pub fn all_rows(&self) -> Option<Table> {
        match self.shelf {
            Some(shelf) => shelf.borrow_mut().all_rows(self.build_id.as_deref(), self.module),
            None => Table::of_all(self.module).ok(),
        }
    }
}

/// A stretch of a file that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// Stated address of its first byte.
    pub address: u64,
    /// Place of that byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
}

/// What an assistant did, in samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// Walked in the kernel, counted ones included.
    pub walked: u64,
    /// Of tasks that are not recorded.
    pub others: u64,
    /// Not walked, by where that ended.
    pub reasons: Vec<(&'static str, u64)>,
    /// Memory that its tables take.
    pub table_bytes: u64,
    /// Tables that had to make room for others.
    pub evicted: u64,
    /// Messages that made no sense.
    pub damaged: u64,
}

/// A counted stack: key, process and thread.
type Key = (u64, u32, u32);
/// What a sample became: event, thread, stack and processor.
pub(crate) type Row = (EventId, ThreadId, Option<StackId>, u32);

/// Time between two looks at the counts.
const COUNTS_NS: u64 = 1_000_000_000;

/// Has an assistant follow these processes and their descendants.
pub(crate) fn follow(assistant: &mut dyn Assistant, pids: &[u32]) -> io::Result<()> {
    follow_all(pids, |pid| assistant.follow(pid))
}

/// Likewise whatever follows.
pub(crate) fn follow_all(
    pids: &[u32],
    mut follow: impl FnMut(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut known = FxHashSet::default();
    // Of a process that is forked while they are listed the parent may not have been followed yet: until none is new.
    loop {
        let new: Vec<u32> = procfs::tree(pids).into_iter().filter(|&pid| known.insert(pid)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for pid in new {
            // One that has gone in the meantime needs no following.
            let Ok(descriptor) = pidfd(pid) else { continue };
            match follow(descriptor.as_fd()) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
                _ => {}
            }
        }
    }
}

/// The assistant of a recording, and what is remembered for it.
pub(crate) struct Assisted {
    assistant: Box<dyn Assistant>,
    messages: Messages,
    /// The stacks that may be counted, by key, process and thread.
    stacks: FxHashMap<Key, Row>,
    /// What was counted of stacks whose first sample has not been handed out yet.
    waiting: FxHashMap<Key, Counted>,
    counts_ns: u64,
    /// The events, by the numbers that programs are attached to them with.
    events: Vec<EventId>,
    /// Samples of each so far, counted ones included.
    samples: FxHashMap<EventId, u64>,
    /// How many files' code it wanted so far.
    wants: u64,
}

impl Assisted {
    /// `events`: the sampled ones, by the numbers that programs are attached to them with.
    pub fn new(assistant: Box<dyn Assistant>, events: Vec<EventId>) -> Self {
        Self {
            assistant,
            messages: Messages::default(),
            stacks: FxHashMap::default(),
            waiting: FxHashMap::default(),
            counts_ns: 0,
            events,
            samples: FxHashMap::default(),
            wants: 0,
        }
    }

    pub fn assistant(&self) -> &dyn Assistant {
        &*self.assistant
    }

    /// From now on samples count.
    pub fn start(&mut self) -> io::Result<()> {
        self.assistant.begin()
    }

    /// Samples of an event so far that it walked.
    pub fn samples(&self, event: EventId) -> u64 {
        self.samples.get(&event).copied().unwrap_or(0)
    }

    /// How many files' code it wanted so far: what it can't walk meanwhile is copied.
    pub fn wants(&self) -> u64 {
        self.wants
    }

    /// Has it follow a process that has just begun, unless that has gone.
    pub fn follow(&mut self, pid: u32) {
        if let Ok(descriptor) = pidfd(pid) {
            let _ = self.assistant.follow(descriptor.as_fd());
        }
    }

    /// Takes what messages there are. Records that they depend on have to be looked for afterwards.
    pub fn take(&mut self) {
        self.assistant.take(&mut self.messages);
        // Processors write into one ring: nearly in order.
        self.messages.list.sort_by_key(Message::time_ns);
    }

    /// The messages, oldest first, to be handed out in between records.
    pub fn begin(&mut self) -> Between<'_> {
        Between { next: 0, assisted: self }
    }

    /// Adds what was counted, so that nothing is remembered of rows that are going to be forgotten.
    pub fn add_counts_now(&mut self, ingest: &mut Ingest, now_ns: u64) {
        self.counts_ns = 0;
        self.add_counts(ingest, now_ns);
        self.stacks.clear();
    }

    /// Adds what was counted, if it is time. To be called when all messages up to `now_ns` were handed out.
    pub fn add_counts(&mut self, ingest: &mut Ingest, now_ns: u64) {
        for (key, counted) in self.waiting.drain() {
            match self.stacks.get(&key) {
                Some(&row) => {
                    *self.samples.entry(row.0).or_default() += counted.samples;
                    ingest.counted(row, &counted);
                }
                None => ingest.lost(counted.samples),
            }
        }
        if now_ns.saturating_sub(self.counts_ns) < COUNTS_NS {
            return;
        }
        self.counts_ns = now_ns;
        let Self { assistant, stacks, waiting, samples, .. } = self;
        assistant.take_counts(&mut |counted| {
            let key = (counted.key, counted.pid, counted.tid);
            match stacks.get(&key) {
                Some(&row) => {
                    *samples.entry(row.0).or_default() += counted.samples;
                    ingest.counted(row, &counted);
                }
                // Its first sample was sent after the last look, and is to meet the records of its time.
                None if counted.samples > 0 => drop(waiting.insert(key, counted)),
                None => {}
            }
        });
        self.stacks.clear();
    }
}

/// Hands out messages in between records.
pub(crate) struct Between<'a> {
    assisted: &'a mut Assisted,
    next: usize,
}

impl Between<'_> {
    /// Hands out all that are no newer than `until_ns`.
    pub fn hand_out(&mut self, ingest: &mut Ingest, until_ns: u64) {
        let Assisted { assistant, messages, stacks, wants, samples, events, .. } = &mut *self.assisted;
        while let Some(message) =
            messages.list.get_mut(self.next).filter(|message| message.time_ns() <= until_ns)
        {
            self.next += 1;
            match message {
                Message::Code { pid, code, memory, .. } => {
                    ingest.learn_code(*pid, *code, std::mem::take(memory));
                }
                Message::Sample(sample) => {
                    let frames =
                        |range: &Range<usize>| messages.frames.get(range.clone()).unwrap_or_default();
                    let script = messages.script.get(sample.script.clone()).unwrap_or_default();
                    let parts = Parts { user: frames(&sample.user), kernel: frames(&sample.kernel), script };
                    // No other number was given.
                    let Some(&event) = events.get(sample.event) else { continue };
                    *samples.entry(event).or_default() += 1;
                    if let Some(row) = ingest.walked(event, sample, parts)
                        && sample.key != 0
                    {
                        stacks.insert((sample.key, sample.pid, sample.tid), row);
                    }
                }
                Message::Want { pid, address, file, .. } => {
                    *wants += 1;
                    assistant.supply(*file, ingest.lend(*pid, *address));
                }
                &mut Message::Spent { pid, tid, runtime_ns, at_exec, .. } => {
                    ingest.spent((pid, tid), runtime_ns, at_exec);
                }
            }
        }
    }

    /// Forgets what was handed out.
    pub fn end(self, ingest: &mut Ingest) {
        let Messages { list, frames, script } = &mut self.assisted.messages;
        list.drain(..self.next);
        if list.is_empty() {
            frames.clear();
            script.clear();
        }
        for pid in ingest.take_remapped() {
            self.assisted.assistant.forget(pid);
        }
    }
}
