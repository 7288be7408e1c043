//! The kernel unwinder of a recording, and the state kept for it.
//!
//! Messages of the unwinder are merged with the records by time, so that each is handled with the mappings of its time.
//!
//! Elsewhere: the unwinder itself and its messages (`plumb_capture_api`).

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Instant;

use plumb_capture_api::{
    Counted, KernelUnwinder, Measure, Message, Messages, OtherPrograms, Parts, Script, WITHOUT_STACK,
};
use plumb_ingest::Ingest;
use plumb_process::{Backing, pidfd};
use plumb_profile::{EventId, Sample};
use plumb_target::begin::follow_all;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pacing::Pacing;

/// Key of a counted stack: the unwinder's key, process and thread.
type Key = (u64, u32, u32);

/// The first sample of a counted stack; further ones are copies of it.
#[derive(Clone, Copy, Debug)]
struct First {
    sample: Sample,
    /// The window in which it was last counted or sent.
    window: u32,
}

/// Time between two reads of the counts.
const COUNTS_NS: u64 = 1_000_000_000;

/// Lets an unwinder follow these processes and their descendants.
pub(crate) fn follow(unwinder: &mut dyn KernelUnwinder, pids: &[u32]) -> io::Result<()> {
    // Called first: if all processes have ended by now, no process is followed, instead of all.
    unwinder.only_followed()?;
    follow_all(pids, |pid| unwinder.follow(pid))
}

/// Stacks that are kept while their profile is taken out.
#[derive(Default)]
pub(crate) struct KeptStacks(FxHashMap<Key, First>);

impl KeptStacks {
    /// The samples that later ones are copies of.
    pub fn samples(&mut self) -> impl Iterator<Item = &mut Sample> {
        self.0.values_mut().map(|first| &mut first.sample)
    }
}

/// The kernel unwinder of a recording, and the state kept for it.
pub(crate) struct AttachedUnwinder {
    unwinder: Box<dyn KernelUnwinder>,
    messages: Messages,
    /// Number of messages, from the first on, whose announcements of records have been handled.
    known: usize,
    /// Stacks that may be counted, by key, process and thread.
    stacks: FxHashMap<Key, First>,
    /// Number of times that the profile was taken out.
    window: u32,
    /// Counts of stacks whose first sample has not been handed out yet.
    waiting: FxHashMap<Key, Counted>,
    counts_ns: u64,
    /// The events by program number: first those of a measurement, then others.
    events: Vec<EventId>,
    /// Whether there is a measurement. Its stacks may be counted throughout the recording.
    is_measuring: bool,
    /// Number of requests for files' code so far.
    wants: u64,
    /// Requested unwind information to be supplied, by file number.
    due: Vec<(u32, Option<Backing>)>,
    pacing: Pacing,
}

impl AttachedUnwinder {
    /// `events`: the sampled events by program number.
    pub fn new(mut unwinder: Box<dyn KernelUnwinder>, events: Vec<EventId>) -> Self {
        let is_measuring = unwinder.measure().is_some();
        Self {
            unwinder,
            is_measuring,
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

    pub fn kernel(&self) -> &dyn KernelUnwinder {
        &*self.unwinder
    }

    /// Programs of other tools that ran so far.
    pub fn other_programs(&mut self, now: bool) -> OtherPrograms {
        self.unwinder.other_programs(now)
    }

    /// The measurement, if any.
    pub fn measure(&mut self) -> Option<&mut dyn Measure> {
        self.unwinder.measure()
    }

    /// Reports threads that are still off the CPU.
    pub fn add_pending(&mut self, ingest: &mut Ingest, now_ns: u64) {
        let pending = self.unwinder.measure().map(|measure| measure.pending(now_ns));
        for time in pending.into_iter().flatten() {
            let first = self.stacks.get(&(time.key, time.pid, time.tid));
            ingest.weights().add_time_off(first.map(|first| first.sample), time);
        }
    }

    /// Stops sampling probes.
    pub fn unwatch(&mut self) -> io::Result<()> {
        self.unwinder.unwatch()
    }

    /// Starts counting samples.
    pub fn start(&mut self) -> io::Result<()> {
        self.unwinder.begin()
    }

    /// Finds threads that are off the CPU and were not reported, and counts ongoing times up to now, if off-CPU time is
    /// measured. `ends`: this is the last call. An error: the threads can't be read.
    pub fn look_at_threads(&mut self, ingest: &mut Ingest, ends: bool) -> io::Result<()> {
        let (Some(measure), &[blocked, waited, ..]) = (self.unwinder.measure(), &self.events[..]) else {
            return Ok(());
        };
        for thread in measure.off_now(ends)? {
            let Some(sample) = ingest.stack_off(blocked, &thread) else { continue };
            let key = |key| (key, thread.pid, thread.tid);
            let first = First { sample, window: self.window };
            self.stacks.insert(key(thread.key), first);
            let sample = Sample { event: waited, ..sample };
            self.stacks.insert(key(thread.key + 1), First { sample, ..first });
        }
        Ok(())
    }

    /// Whether a request is waiting.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Supplies the requested tables. Making them may take long.
    pub fn supply(&mut self, ingest: &mut Ingest) {
        for (file, backing) in self.due.drain(..) {
            match backing {
                Some(Backing::Anonymous) => self.unwinder.mark_memory(file),
                // A table made now would be discarded.
                _ if !self.unwinder.can_load() || !self.pacing.allows(file, backing) => {
                    self.unwinder.supply(file, None);
                }
                backing => {
                    let began = Instant::now();
                    if self.unwinder.supply(file, backing.and_then(|backing| ingest.code().lend(backing))) {
                        self.pacing.note(file, backing, began);
                    }
                }
            }
            ingest.code().make_room();
        }
    }

    /// Number of requests for files' code so far: stacks in a requested file are copied until it is supplied.
    pub fn wants(&self) -> u64 {
        self.wants
    }

    /// Follows a process that has just started, unless it has ended.
    pub fn follow(&mut self, pid: u32) {
        if let Ok(descriptor) = pidfd(pid) {
            let _ = self.unwinder.follow(descriptor.as_fd());
        }
    }

    /// Takes the waiting messages. Records that they depend on have to be read afterwards, and records that depend on them too.
    pub fn take(&mut self, ingest: &mut Ingest) {
        self.fetch();
        for message in self.messages.list.iter_mut().skip(self.known) {
            match message {
                &mut Message::InCall { tid, time_ns, syscall } => {
                    ingest.note_interrupted_call(tid, time_ns, syscall)
                }
                Message::Script { tid, script } => {
                    let rounds = std::mem::take(&mut script.rounds);
                    ingest.note_script(*tid, Script { rounds, ..*script });
                }
                _ => {}
            }
        }
        // All CPUs write into one ring, so messages are nearly in order.
        self.messages.list.sort_by_key(Message::time_ns);
        self.known = self.messages.list.len();
    }

    /// Moves messages from the kernel to this queue, as the kernel's buffer holds only some seconds: stacks unwound while it is full are copied
    /// instead, and fill the rings of records.
    pub fn fetch(&mut self) {
        self.unwinder.take(&mut self.messages);
    }

    /// The messages, oldest first, to be handed out in between records.
    pub fn begin(&mut self) -> Between<'_> {
        Between { next: 0, unwinder: self }
    }

    /// Adds the counts, so that no state refers to rows that are about to be dropped. Waiting counts keep waiting: no
    /// message has been handed out since they were taken.
    pub fn add_counts_now(&mut self, ingest: &mut Ingest) {
        self.take_counts(ingest);
        self.stacks.clear();
    }

    /// Adds the counts at the end of a window, with ongoing off-CPU times up to now. Returns the stacks that these and later times
    /// are counted by, so that their rows are kept ([`AttachedUnwinder::keep`]): all others are sent again first.
    pub fn end_window(&mut self, ingest: &mut Ingest) -> KeptStacks {
        if !self.is_measuring {
            self.add_counts_now(ingest);
            return KeptStacks::default();
        }
        // First the counts of keys that threads may reuse. Without a list of threads, times are reported as they end.
        self.take_counts(ingest);
        let _ = self.look_at_threads(ingest, false);
        self.take_counts(ingest);
        let pending = self.unwinder.measure().map(|measure| measure.pending(0)).unwrap_or_default();
        let keys =
            pending.iter().flat_map(|time| [time.key, time.key + 1].map(|key| (key, time.pid, time.tid)));
        let pending: FxHashSet<Key> = keys.collect();
        // A program may have looked up a key just before, and its count be on the way.
        let window = self.window;
        self.stacks.retain(|key, first| first.window == window || pending.contains(key));
        self.window += 1;
        KeptStacks(std::mem::take(&mut self.stacks))
    }

    /// Continues with these stacks, which have their new rows.
    pub fn keep(&mut self, stacks: KeptStacks) {
        self.stacks = stacks.0;
    }

    /// Adds the counts, if due. To be called when all messages up to `now_ns` were handed out.
    pub fn add_counts(&mut self, ingest: &mut Ingest, now_ns: u64) {
        for (key, counted) in self.waiting.drain() {
            match self.stacks.get(&key) {
                Some(first) => ingest.weights().add_counted(first.sample, &counted),
                None => ingest.weights().add_lost(counted.samples),
            }
        }
        if now_ns.saturating_sub(self.counts_ns) >= COUNTS_NS {
            self.counts_ns = now_ns;
            self.take_counts(ingest);
        }
    }

    fn take_counts(&mut self, ingest: &mut Ingest) {
        let Self { unwinder, stacks, waiting, window, .. } = self;
        unwinder.take_counts(&mut |counted| {
            let key = (counted.key, counted.pid, counted.tid);
            match stacks.get_mut(&key) {
                Some(first) => {
                    first.window = *window;
                    ingest.weights().add_counted(first.sample, &counted);
                }
                None if counted.key <= WITHOUT_STACK => {
                    ingest.weights().add_times_without_stack(&counted.times())
                }
                // The first sample was sent after the last read, and must be handled with the records of its time.
                None if counted.samples > 0 => waiting.entry(key).or_default().add(counted),
                None => {}
            }
        });
        if !self.is_measuring {
            self.stacks.clear();
        }
    }
}

/// Hands out messages in between records.
pub(crate) struct Between<'a> {
    unwinder: &'a mut AttachedUnwinder,
    next: usize,
}

impl Between<'_> {
    /// Hands out all messages that are not newer than `until_ns`.
    pub fn hand_out(&mut self, ingest: &mut Ingest, until_ns: u64) {
        let AttachedUnwinder { messages, stacks, wants, due, events, window, .. } = &mut *self.unwinder;
        let window = *window;
        while let Some(message) =
            messages.list.get_mut(self.next).filter(|message| message.time_ns() <= until_ns)
        {
            self.next += 1;
            match message {
                Message::Code { pid, code, memory, .. } => {
                    ingest.code().learn_code(*pid, *code, std::mem::take(memory));
                }
                Message::Sample(sample) => {
                    let frames =
                        |range: &Range<usize>| messages.frames.get(range.clone()).unwrap_or_default();
                    let script = messages.script.get(sample.script.clone()).unwrap_or_default();
                    let parts = Parts { user: frames(&sample.user), kernel: frames(&sample.kernel), script };
                    // No other number was assigned.
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
                    ingest.weights().add_time_off(first.map(|first| first.sample), time);
                }
                Message::Want { pid, address, file, .. } => {
                    *wants += 1;
                    // Looked up now, as the process may soon run another program.
                    due.push((*file, ingest.code().mapped_at(*pid, *address)));
                }
                // Handled before the records.
                Message::InCall { .. } | Message::Script { .. } => {}
                Message::Registers { time_ns, pid, tid, event, ip, values } => {
                    if let Some(&event) = events.get(*event) {
                        ingest.registers(event, (*pid, *tid), (*time_ns, *ip), **values);
                    }
                }
                &mut Message::Spent { pid, tid, runtime_ns, at_exec, .. } => {
                    ingest.processes().spent((pid, tid), runtime_ns, at_exec);
                }
                Message::InCgroup { pid, path, .. } => {
                    ingest.processes().ended_in(*pid, std::mem::take(path))
                }
            }
        }
    }

    /// Drops the messages that were handed out.
    pub fn end(self, ingest: &mut Ingest) {
        self.unwinder.known -= self.next;
        let messages = &mut self.unwinder.messages;
        messages.list.drain(..self.next);
        messages.forget_frames();
        for (pid, address) in ingest.code().take_interpreted() {
            self.unwinder.unwinder.add_interpreter(pid, address);
        }
        for (pid, mapping) in ingest.code().take_copied_text() {
            if let Backing::File(file) = mapping.backing {
                let (start, offset) = (mapping.start, mapping.offset.0);
                self.unwinder.unwinder.add_copied_text(pid, start, file.index(), offset);
            }
        }
        for pid in ingest.code().take_remapped() {
            self.unwinder.unwinder.forget(pid);
        }
    }
}

#[cfg(test)]
#[path = "unwinder_tests.rs"]
mod tests;
