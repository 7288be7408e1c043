//! A recording's walker of stacks in the kernel, and what is remembered for it.
//!
//! Its messages are merged with the records by time, so that each meets the mappings of its moment.
//!
//! Not here: how it walks, what it says (`plumb_capture_api`).

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Instant;

use plumb_capture_api::{
    Counted, KernelUnwinder, Message, Messages, OffCpu, OtherPrograms, Parts, Script, WITHOUT_STACK,
};
use plumb_ingest::Ingest;
use plumb_process::{Backing, pidfd};
use plumb_profile::{EventId, Sample};
use plumb_target::begin::follow_all;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pacing::Pacing;

/// A counted stack: key, process and thread.
type Key = (u64, u32, u32);

/// The sample that what is counted by a key is like.
#[derive(Clone, Copy, Debug)]
struct First {
    sample: Sample,
    /// In which window it was counted last, or sent.
    window: u32,
}

/// Time between two looks at the counts.
const COUNTS_NS: u64 = 1_000_000_000;

/// Has an assistant follow these processes and their descendants.
pub(crate) fn follow(assistant: &mut dyn KernelUnwinder, pids: &[u32]) -> io::Result<()> {
    // Should all of them have ended by now, nobody is followed, not everybody.
    assistant.only_followed()?;
    follow_all(pids, |pid| assistant.follow(pid))
}

/// Stacks that are kept while the profile that they are in is taken out.
#[derive(Default)]
pub(crate) struct KeptStacks(FxHashMap<Key, First>);

impl KeptStacks {
    /// The samples that later ones will be like.
    pub fn samples(&mut self) -> impl Iterator<Item = &mut Sample> {
        self.0.values_mut().map(|first| &mut first.sample)
    }
}

/// The assistant of a recording, and what is remembered for it.
pub(crate) struct UnwinderSession {
    assistant: Box<dyn KernelUnwinder>,
    messages: Messages,
    /// How many of the messages, from the first on, have been looked at for what they tell of records to come.
    known: usize,
    /// The stacks that may be counted, by key, process and thread.
    stacks: FxHashMap<Key, First>,
    /// How often what was measured was taken out.
    window: u32,
    /// What was counted of stacks whose first sample has not been handed out yet.
    waiting: FxHashMap<Key, Counted>,
    counts_ns: u64,
    /// The events, by the numbers that programs are attached to them with. Where time off the processor is measured: blocked, waited, then others.
    events: Vec<EventId>,
    /// What is counted is time off the processor. Its stacks may be counted for as long as the recording goes on.
    is_off_cpu: bool,
    /// How many files' code it wanted so far.
    wants: u64,
    /// What it is to get, by its numbers of files.
    due: Vec<(u32, Option<Backing>)>,
    pacing: Pacing,
}

impl UnwinderSession {
    /// `events`: the sampled ones, by the numbers that programs are attached to them with.
    pub fn new(mut assistant: Box<dyn KernelUnwinder>, events: Vec<EventId>) -> Self {
        let is_off_cpu = assistant.off_cpu().is_some();
        Self {
            assistant,
            is_off_cpu,
            messages: Messages::default(),
            known: 0,
            stacks: FxHashMap::default(),
            window: 0,
            waiting: FxHashMap::default(),
            counts_ns: 0,
            events,
            wants: 0,
            due: Vec::new(),
            pacing: Pacing::default(),
        }
    }

    pub fn assistant(&self) -> &dyn KernelUnwinder {
        &*self.assistant
    }

    /// Programs of other tools that ran so far.
    pub fn other_programs(&mut self, now: bool) -> OtherPrograms {
        self.assistant.other_programs(now)
    }

    /// What measures time off the processor.
    pub fn off_cpu(&mut self) -> Option<&mut dyn OffCpu> {
        self.assistant.off_cpu()
    }

    /// Tells of threads that are still off.
    pub fn add_pending(&mut self, ingest: &mut Ingest, now_ns: u64) {
        let pending = self.assistant.off_cpu().map(|off_cpu| off_cpu.pending(now_ns));
        for time in pending.into_iter().flatten() {
            let first = self.stacks.get(&(time.key, time.pid, time.tid));
            ingest.time_off(first.map(|first| first.sample), time);
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

    /// Learns where threads are that are off the processor and were not told of, and has times that go on counted up to now, if that is
    /// measured. `ends`: they are not looked at again. An error: it can't be known.
    pub fn look_at_threads(&mut self, ingest: &mut Ingest, ends: bool) -> io::Result<()> {
        let (Some(off_cpu), &[blocked, waited, ..]) = (self.assistant.off_cpu(), &self.events[..]) else {
            return Ok(());
        };
        for thread in off_cpu.off_now(ends)? {
            let Some(sample) = ingest.stack_off(blocked, &thread) else { continue };
            let key = |key| (key, thread.pid, thread.tid);
            let first = First { sample, window: self.window };
            self.stacks.insert(key(thread.key), first);
            let sample = Sample { event: waited, ..sample };
            self.stacks.insert(key(thread.key + 1), First { sample, ..first });
        }
        Ok(())
    }

    /// Whether there is something to be supplied.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Supplies what it wanted. That may take long: tables are made.
    pub fn supply(&mut self, ingest: &mut Ingest) {
        for (file, backing) in self.due.drain(..) {
            match backing {
                Some(Backing::Anonymous) => self.assistant.is_memory(file),
                // Who makes a table now would throw it away.
                _ if !self.assistant.can_load() || !self.pacing.allows(file, backing) => {
                    self.assistant.supply(file, None);
                }
                backing => {
                    let began = Instant::now();
                    if self.assistant.supply(file, backing.and_then(|backing| ingest.lend(backing))) {
                        self.pacing.note(file, backing, began);
                    }
                }
            }
            ingest.make_room();
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
        self.fetch();
        for message in self.messages.list.iter_mut().skip(self.known) {
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
        self.known = self.messages.list.len();
    }

    /// Has messages wait here and not in the kernel, whose room for them is some seconds': what is walked when there is none is copied
    /// instead, and fills the rings of records.
    pub fn fetch(&mut self) {
        self.assistant.take(&mut self.messages);
    }

    /// The messages, oldest first, to be handed out in between records.
    pub fn begin(&mut self) -> Between<'_> {
        Between { next: 0, assisted: self }
    }

    /// Adds what was counted, so that nothing is remembered of rows that are going to be forgotten. What waits goes on waiting: no
    /// message was handed out since that was taken.
    pub fn add_counts_now(&mut self, ingest: &mut Ingest) {
        self.take_counts(ingest);
        self.stacks.clear();
    }

    /// Likewise at the end of a window, where times off the processor that go on are counted up to now. Gives back the stacks that these and later
    /// ones are counted by, for their rows to be kept ([`UnwinderSession::keep`]): all others are sent again before.
    pub fn end_window(&mut self, ingest: &mut Ingest) -> KeptStacks {
        if !self.is_off_cpu {
            self.add_counts_now(ingest);
            return KeptStacks::default();
        }
        // First what was counted by keys that threads may get anew. Without threads, times are told as they end.
        self.take_counts(ingest);
        let _ = self.look_at_threads(ingest, false);
        self.take_counts(ingest);
        let pending = self.assistant.off_cpu().map(|off_cpu| off_cpu.pending(0)).unwrap_or_default();
        let keys =
            pending.iter().flat_map(|time| [time.key, time.key + 1].map(|key| (key, time.pid, time.tid)));
        let pending: FxHashSet<Key> = keys.collect();
        // A key may be on its way from a program that found it counted just before.
        let window = self.window;
        self.stacks.retain(|key, first| first.window == window || pending.contains(key));
        self.window += 1;
        KeptStacks(std::mem::take(&mut self.stacks))
    }

    /// Goes on with these stacks, which have their new rows.
    pub fn keep(&mut self, stacks: KeptStacks) {
        self.stacks = stacks.0;
    }

    /// Adds what was counted, if it is time. To be called when all messages up to `now_ns` were handed out.
    pub fn add_counts(&mut self, ingest: &mut Ingest, now_ns: u64) {
        for (key, counted) in self.waiting.drain() {
            match self.stacks.get(&key) {
                Some(first) => ingest.counted(first.sample, &counted),
                None => ingest.lost(counted.samples),
            }
        }
        if now_ns.saturating_sub(self.counts_ns) >= COUNTS_NS {
            self.counts_ns = now_ns;
            self.take_counts(ingest);
        }
    }

    fn take_counts(&mut self, ingest: &mut Ingest) {
        let Self { assistant, stacks, waiting, window, .. } = self;
        assistant.take_counts(&mut |counted| {
            let key = (counted.key, counted.pid, counted.tid);
            match stacks.get_mut(&key) {
                Some(first) => {
                    first.window = *window;
                    ingest.counted(first.sample, &counted);
                }
                None if counted.key <= WITHOUT_STACK => ingest.times_without_stack(&counted.times()),
                // Its first sample was sent after the last look, and is to meet the records of its time.
                None if counted.samples > 0 => waiting.entry(key).or_default().add(counted),
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
    assisted: &'a mut UnwinderSession,
    next: usize,
}

impl Between<'_> {
    /// Hands out all that are no newer than `until_ns`.
    pub fn hand_out(&mut self, ingest: &mut Ingest, until_ns: u64) {
        let UnwinderSession { messages, stacks, wants, due, events, window, .. } = &mut *self.assisted;
        let window = *window;
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
                        let mut insert = |key, sample| stacks.insert(key, First { sample, window });
                        insert((sample.key, sample.pid, sample.tid), first);
                        if let (true, Some(&event)) = (sample.is_stack_only, events.get(1)) {
                            insert((sample.key + 1, sample.pid, sample.tid), Sample { event, ..first });
                        }
                    }
                }
                &mut Message::Off { time, .. } => {
                    let first = stacks.get(&(time.key, time.pid, time.tid));
                    ingest.time_off(first.map(|first| first.sample), time);
                }
                Message::Want { pid, address, file, .. } => {
                    *wants += 1;
                    // Now: the process may soon be another program.
                    due.push((*file, ingest.mapped_at(*pid, *address)));
                }
                // Told before the records.
                Message::InCall { .. } | Message::Script { .. } => {}
                Message::Registers { time_ns, pid, tid, event, ip, values } => {
                    if let Some(&event) = events.get(*event) {
                        ingest.registers(event, (*pid, *tid), (*time_ns, *ip), **values);
                    }
                }
                &mut Message::Spent { pid, tid, runtime_ns, at_exec, .. } => {
                    ingest.spent((pid, tid), runtime_ns, at_exec);
                }
                Message::InCgroup { pid, path, .. } => ingest.ended_in(*pid, std::mem::take(path)),
            }
        }
    }

    /// Forgets what was handed out.
    pub fn end(self, ingest: &mut Ingest) {
        self.assisted.known -= self.next;
        let messages = &mut self.assisted.messages;
        messages.list.drain(..self.next);
        messages.forget_frames();
        for (pid, address) in ingest.take_interpreted() {
            self.assisted.assistant.has_interpreter(pid, address);
        }
        for (pid, mapping) in ingest.take_copied_text() {
            if let Backing::File(file) = mapping.backing {
                let (start, offset) = (mapping.start, mapping.offset.0);
                self.assisted.assistant.has_copied_text(pid, start, file.index(), offset);
            }
        }
        for pid in ingest.take_remapped() {
            self.assisted.assistant.forget(pid);
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
