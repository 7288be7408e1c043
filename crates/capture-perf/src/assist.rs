//! What walks stacks in the kernel, as the recorder sees it.
//!
//! An [`Assistant`] is attached to the sampling events and keeps the samples that it can walk; all others come as records of
//! their own. Its messages are merged with the records by time, so that each meets the mappings of its moment.
//!
//! Not here: how it walks.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use plumb_interpreters::{CodeId, Root};
use plumb_process::{Backing, pidfd};
use plumb_profile::{EventId, Sample};
use plumb_target::begin::follow_all;
use plumb_unwind::{Module, table::Table};
use rustc_hash::FxHashMap;

use crate::attr::Pace;
use crate::ingest::{Ingest, NEAR_NS};
use crate::off_cpu::{OffCpu, TimeOff};
use crate::shelf::Shelf;

/// Something that walks stacks before they are copied.
pub trait Assistant {
    /// The program for the sampling events, unless it measures instead of sampling. It returns 0 for a sample that it keeps.
    fn program(&self) -> Option<BorrowedFd<'_>>;
    /// Becomes readable when there are messages to be taken soon.
    fn wakes(&self) -> BorrowedFd<'_>;
    /// Keeps to this process, by its pidfd, with what it forks from now on, and to others that are told.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()>;
    /// From now on samples count. Before, it only says which files' code it wants, and no sample becomes a record.
    fn begin(&mut self) -> io::Result<()>;
    /// Keeps to processes that are followed, and follows any that execs a program and then has this name, from that moment on.
    fn await_comm(&mut self, comm: &[u8]) -> io::Result<()>;
    /// Has each passing of a place be an event. Which of them are samples is then decided in the kernel. An error says why it can't
    /// be, in words that end a sentence.
    fn watch(&mut self, watched: &Watched<'_>) -> io::Result<Copiers>;
    /// The program for the events of functions that are watched, to be attached with their numbers.
    fn at_function(&self) -> Option<BorrowedFd<'_>>;
    /// Watches no place any more.
    fn unwatch(&mut self) -> io::Result<()>;
    /// What became of a place that is watched.
    fn passed(&self, number: usize) -> Option<Passed>;
    /// Takes the messages that are there.
    fn take(&mut self, into: &mut Messages);
    /// Takes what was counted since the last time.
    fn take_counts(&mut self, each: &mut dyn FnMut(Counted));
    /// Gives it the code of a file that it wants; `None`: it could not be found this time.
    fn supply(&mut self, file: u32, code: Option<Lent<'_>>);
    /// There is a known interpreter in what this process has mapped at an address.
    fn has_interpreter(&mut self, pid: u32, address: u64);
    /// Something else was mapped over a mapping of this process.
    fn forget(&mut self, pid: u32);
    /// How many samples it walked, and why others were handed over.
    fn handed_over(&self) -> HandedOver;
    /// What measures time off the processor, if this does: instead of sampling.
    fn off_cpu(&mut self) -> Option<&mut dyn OffCpu>;
}

/// A place to be watched.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The number of its event.
    pub number: usize,
    /// The tracepoint, as `GROUP:NAME`; `None`: a function, to whose event [`Assistant::at_function`] is attached.
    pub tracepoint: Option<&'a str>,
    /// How often a sample is taken.
    pub pace: Pace,
    /// So many samples a second are taken once each single one is too many; `None`: they never are.
    pub limit_hz: Option<u32>,
    /// Only what runs while its copiers do is to be sampled.
    pub is_scoped: bool,
}

/// What samples of a place that can't be walked are sent through: events that exist for that.
#[derive(Debug)]
pub struct Copiers {
    /// The map that they are entered in, by processor.
    pub map: OwnedFd,
    /// The functions through which the kernel calls the program, where its samples have kernel stacks.
    pub way_in: Option<Vec<Range<u64>>>,
}

/// What became of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// How often the target passed it.
    pub times: u64,
    /// Samples are taken by time, as was asked for or because each single one was too many.
    pub is_by_time: bool,
    /// Samples that could neither be walked nor copied.
    pub lost: u64,
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

impl Messages {
    /// Forgets the frames of samples that are not there any more. On a busy machine there is always a message that is newer than the
    /// records that were read, so that this must not wait until there is none.
    fn forget_frames(&mut self) {
        let Self { list, frames, script } = self;
        if !list.is_empty() && frames.len() <= KEPT_FRAMES && script.len() <= KEPT_FRAMES {
            return;
        }
        let samples = || list.iter().filter_map(Message::sample);
        let starts = |ranges: &mut dyn Iterator<Item = &Range<usize>>| {
            ranges.filter(|range| !range.is_empty()).map(|range| range.start).min()
        };
        let first = starts(&mut samples().flat_map(|sample| [&sample.user, &sample.kernel]));
        let first_script = starts(&mut samples().map(|sample| &sample.script));
        let gone = first.unwrap_or(frames.len()).min(frames.len());
        let gone_script = first_script.unwrap_or(script.len()).min(script.len());
        frames.drain(..gone);
        script.drain(..gone_script);
        let moved = |range: &Range<usize>, by: usize| match range.is_empty() {
            true => 0..0,
            false => range.start - by..range.end - by,
        };
        for message in list.iter_mut() {
            let Message::Sample(sample) = message else { continue };
            sample.user = moved(&sample.user, gone);
            sample.kernel = moved(&sample.kernel, gone);
            sample.script = moved(&sample.script, gone_script);
        }
        // After a while in which nobody had time for them there were many.
        list.shrink_to(2 * list.len() + KEPT_FRAMES / 16);
        frames.shrink_to(2 * frames.len() + KEPT_FRAMES);
        script.shrink_to(2 * script.len() + KEPT_FRAMES);
    }
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
    /// The frames of the interpreted program of a sample that was handed over: its record comes next.
    Script {
        /// The task.
        tid: u32,
        /// The frames.
        script: Script,
    },
    /// A thread was off the processor.
    Off {
        /// When it came back.
        time_ns: u64,
        /// The time.
        time: TimeOff,
    },
    /// A sample was taken in the kernel, and its record follows.
    InCall {
        /// When.
        time_ns: u64,
        /// The thread.
        tid: u32,
        /// Number of the system call that it interrupted.
        syscall: Option<u32>,
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
    fn sample(&self) -> Option<&WalkedSample> {
        match self {
            Message::Sample(sample) => Some(sample),
            _ => None,
        }
    }

    /// When it is to be handed out.
    fn time_ns(&self) -> u64 {
        match self {
            Message::Sample(sample) => sample.time_ns,
            // It may be of a sample whose record has a time before.
            Message::Code { time_ns, .. } => time_ns.saturating_sub(NEAR_NS),
            Message::Script { script, .. } => script.time_ns,
            Message::Want { time_ns, .. }
            | Message::Off { time_ns, .. }
            | Message::InCall { time_ns, .. }
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
    /// Number of the system call that it interrupted in the kernel.
    pub syscall: Option<u32>,
    /// What it counts.
    pub period: u64,
    /// Under which equal stacks of the thread are counted from now on; 0: they are not. Where time off the processor is measured
    /// this is an even number, for time blocked; the next one is for time waited.
    pub key: u64,
    /// It is no sample, but a stack that times off the processor are told by.
    pub is_stack_only: bool,
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

/// Frames of an interpreted program, where the native ones are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// When.
    pub time_ns: u64,
    /// Rounds of the interpreter's loop, innermost first.
    pub rounds: Vec<Round>,
    /// There were more than could be sent.
    pub is_cut: bool,
}

/// A round of an interpreter's loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// An address on the stack in the native frame that runs it; `None`: it is not known.
    pub at: Option<u64>,
    /// Its frames, innermost first.
    pub frames: Vec<ScriptPlace>,
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

impl Counted {
    /// As times off the processor, whatever their stack.
    fn times(&self) -> TimeOff {
        let &Self { key, pid, tid, period, time_ns: out_ns, .. } = self;
        let (blocked_ns, waited_ns) = if key == WITHOUT_STACK { (0, period) } else { (period, 0) };
        TimeOff { out_ns, blocked_ns, waited_ns, pid, tid, key: 0 }
    }
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
    /// At most so many times a tracepoint was passed and it was not seen: in an interrupt, while its program was at work for one.
    pub unseen: u64,
    /// Memory that its tables take.
    pub table_bytes: u64,
    /// Tables that had to make room for others.
    pub evicted: u64,
    /// Messages that made no sense.
    pub damaged: u64,
}

/// A counted stack: key, process and thread.
type Key = (u64, u32, u32);

/// Time off the processor is counted by this key and the one before where there is no stack.
const WITHOUT_STACK: u64 = 1;
/// So many frames of messages may be there that were handed out.
const KEPT_FRAMES: usize = 1 << 16;
/// Time between two looks at the counts.
const COUNTS_NS: u64 = 1_000_000_000;

/// Has an assistant follow these processes and their descendants.
pub(crate) fn follow(assistant: &mut dyn Assistant, pids: &[u32]) -> io::Result<()> {
    follow_all(pids, |pid| assistant.follow(pid))
}

/// The assistant of a recording, and what is remembered for it.
pub(crate) struct Assisted {
    assistant: Box<dyn Assistant>,
    messages: Messages,
    /// The stacks that may be counted, by key, process and thread.
    stacks: FxHashMap<Key, Sample>,
    /// What was counted of stacks whose first sample has not been handed out yet.
    waiting: FxHashMap<Key, Counted>,
    counts_ns: u64,
    /// The events, by the numbers that programs are attached to them with. Of time off the processor: blocked, then waited.
    events: Vec<EventId>,
    /// What is counted is time off the processor. Its stacks may be counted for as long as the recording goes on.
    is_off_cpu: bool,
    /// How many files' code it wanted so far.
    wants: u64,
    /// What it is to get, by its numbers of files.
    due: Vec<(u32, Option<Backing>)>,
}

impl Assisted {
    /// `events`: the sampled ones, by the numbers that programs are attached to them with.
    pub fn new(mut assistant: Box<dyn Assistant>, events: Vec<EventId>) -> Self {
        let is_off_cpu = assistant.off_cpu().is_some();
        Self {
            assistant,
            is_off_cpu,
            messages: Messages::default(),
            stacks: FxHashMap::default(),
            waiting: FxHashMap::default(),
            counts_ns: 0,
            events,
            wants: 0,
            due: Vec::new(),
        }
    }

    pub fn assistant(&self) -> &dyn Assistant {
        &*self.assistant
    }

    /// What measures time off the processor.
    pub fn off_cpu(&mut self) -> Option<&mut dyn OffCpu> {
        self.assistant.off_cpu()
    }

    /// Tells of threads that are still off.
    pub fn add_pending(&mut self, ingest: &mut Ingest, now_ns: u64) {
        let pending = self.assistant.off_cpu().map(|off_cpu| off_cpu.pending(now_ns));
        for time in pending.into_iter().flatten() {
            ingest.time_off(self.stacks.get(&(time.key, time.pid, time.tid)).copied(), time);
        }
    }

    /// No samples of places any more.
    pub fn unwatch(&mut self) -> io::Result<()> {
        self.assistant.unwatch()
    }

    /// From now on samples count.
    pub fn start(&mut self) -> io::Result<()> {
        self.assistant.begin()
    }

    /// Learns where threads are that have been off the processor since before the recording began, if that is measured. An error: it
    /// can't be known.
    pub fn look_at_threads(&mut self, ingest: &mut Ingest) -> io::Result<()> {
        let (Some(off_cpu), &[blocked, waited]) = (self.assistant.off_cpu(), &self.events[..]) else {
            return Ok(());
        };
        for thread in off_cpu.off_since_begin()? {
            let Some(sample) = ingest.stack_off(blocked, &thread) else { continue };
            let key = |key| (key, thread.pid, thread.tid);
            self.stacks.insert(key(thread.key), sample);
            self.stacks.insert(key(thread.key + 1), Sample { event: waited, ..sample });
        }
        Ok(())
    }

    /// Whether there is something to be supplied.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Supplies what it wanted. That may take long: tables are made.
    pub fn supply(&mut self, ingest: &Ingest) {
        for (file, backing) in self.due.drain(..) {
            self.assistant.supply(file, backing.and_then(|backing| ingest.lend(backing)));
        }
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

    /// Takes what messages there are. Records that they depend on have to be looked for afterwards, and those that depend on them too.
    pub fn take(&mut self, ingest: &mut Ingest) {
        let known = self.messages.list.len();
        self.assistant.take(&mut self.messages);
        for message in self.messages.list.iter_mut().skip(known) {
            match message {
                &mut Message::InCall { tid, time_ns, syscall } => ingest.is_in_call(tid, time_ns, syscall),
                Message::Script { tid, script } => {
                    let rounds = std::mem::take(&mut script.rounds);
                    ingest.is_in_script(*tid, Script { rounds, ..*script });
                }
                _ => {}
            }
        }
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
                Some(&first) => ingest.counted(first, &counted),
                None => ingest.lost(counted.samples),
            }
        }
        if now_ns.saturating_sub(self.counts_ns) < COUNTS_NS {
            return;
        }
        self.counts_ns = now_ns;
        let Self { assistant, stacks, waiting, .. } = self;
        assistant.take_counts(&mut |counted| {
            let key = (counted.key, counted.pid, counted.tid);
            match stacks.get(&key) {
                Some(&first) => ingest.counted(first, &counted),
                None if counted.key <= WITHOUT_STACK => ingest.times_without_stack(&counted.times()),
                // Its first sample was sent after the last look, and is to meet the records of its time.
                None if counted.samples > 0 => drop(waiting.insert(key, counted)),
                None => {}
            }
        });
        if !self.is_off_cpu {
            self.stacks.clear();
        }
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
        let Assisted { messages, stacks, wants, due, events, .. } = &mut *self.assisted;
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
                    if let Some(first) = ingest.walked(event, sample, parts)
                        && sample.key != 0
                    {
                        stacks.insert((sample.key, sample.pid, sample.tid), first);
                        if let (true, Some(&event)) = (sample.is_stack_only, events.get(1)) {
                            stacks
                                .insert((sample.key + 1, sample.pid, sample.tid), Sample { event, ..first });
                        }
                    }
                }
                &mut Message::Off { time, .. } => {
                    ingest.time_off(stacks.get(&(time.key, time.pid, time.tid)).copied(), time);
                }
                Message::Want { pid, address, file, .. } => {
                    *wants += 1;
                    // Now: the process may soon be another program.
                    due.push((*file, ingest.mapped_at(*pid, *address)));
                }
                // Told before the records.
                Message::InCall { .. } | Message::Script { .. } => {}
                &mut Message::Spent { pid, tid, runtime_ns, at_exec, .. } => {
                    ingest.spent((pid, tid), runtime_ns, at_exec);
                }
            }
        }
    }

    /// Forgets what was handed out.
    pub fn end(self, ingest: &mut Ingest) {
        let messages = &mut self.assisted.messages;
        messages.list.drain(..self.next);
        messages.forget_frames();
        for (pid, address) in ingest.take_interpreted() {
            self.assisted.assistant.has_interpreter(pid, address);
        }
        for pid in ingest.take_remapped() {
            self.assisted.assistant.forget(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(messages: &mut Messages, number: u64) {
        let begin = messages.frames.len();
        messages.frames.extend([number; 20]);
        let script_begin = messages.script.len();
        messages.list.push(Message::Sample(WalkedSample {
            time_ns: number,
            cpu: 0,
            pid: 1,
            tid: 1,
            event: 0,
            syscall: None,
            period: 1,
            key: 0,
            is_stack_only: false,
            in_kernel: false,
            has_user: true,
            user: begin..begin + 12,
            kernel: begin + 12..begin + 20,
            script: script_begin..script_begin,
            script_is_cut: false,
        }));
    }

    #[test]
    fn frames_go_with_their_samples_though_some_always_wait() {
        let mut messages = Messages::default();
        let mut most = 0;
        for number in 0..200_000 {
            sample(&mut messages, number);
            if number % 100 == 99 {
                // All are handed out but the newest three.
                let handed_out = messages.list.len() - 3;
                messages.list.drain(..handed_out);
                messages.forget_frames();
                most = most.max(messages.frames.capacity());
                for message in &messages.list {
                    let of = message.sample().expect("there are no others");
                    let frames =
                        [&messages.frames[of.user.clone()], &messages.frames[of.kernel.clone()]].concat();
                    assert_eq!(frames, [of.time_ns; 20], "each has its own");
                }
            }
        }
        assert!(most < 4 * KEPT_FRAMES, "room for {most} frames");
    }
}
