//! The samples, stored by column: a long recording has millions.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::event::EventId;
use crate::process::ThreadId;
use crate::stack::StackId;
use crate::table::FastHasher;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time in nanoseconds on the recording's clock (see [`Meta::start_ns`](crate::Meta::start_ns)).
    pub time_ns: u64,
    /// The sampled thread.
    pub thread: ThreadId,
    /// Number of the CPU.
    pub cpu: u32,
    /// The event that fired.
    pub event: EventId,
    /// The stack. `None`: nothing is known of it.
    pub stack: Option<StackId>,
    /// Number of the system call that it interrupted in the kernel, as numbered by the recorded machine. `None`: none, or not
    /// known; then kernel functions on the stack may show it.
    pub syscall: Option<u32>,
    /// Amount of the event's unit that the sample represents (perf's period).
    pub weight: u64,
}

/// Samples as columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    time_ns: Vec<u64>,
    thread: Vec<ThreadId>,
    cpu: Vec<u32>,
    event: Vec<EventId>,
    stack: Vec<Option<StackId>>,
    syscall: Vec<Option<u32>>,
    weight: Vec<u64>,
}

impl Samples {
    /// Appends a sample.
    pub fn push(&mut self, sample: Sample) {
        self.time_ns.push(sample.time_ns);
        self.thread.push(sample.thread);
        self.cpu.push(sample.cpu);
        self.event.push(sample.event);
        self.stack.push(sample.stack);
        self.syscall.push(sample.syscall);
        self.weight.push(sample.weight);
    }

    /// Changes a sample's stack, if there is such a sample.
    pub fn set_stack(&mut self, index: usize, stack: Option<StackId>) {
        if let Some(known) = self.stack.get_mut(index) {
            *known = stack;
        }
    }

    /// Sorts the samples by time; those of the same time keep their order.
    pub fn sort_by_time(&mut self) {
        if self.time_ns.is_sorted() {
            return;
        }
        let mut samples: Vec<Sample> = self.iter().collect();
        samples.sort_by_key(|sample| sample.time_ns);
        *self = Samples::default();
        samples.into_iter().for_each(|sample| self.push(sample));
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether the columns are empty.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Returns sample number `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Sample> {
        Some(Sample {
            time_ns: *self.time_ns.get(index)?,
            thread: *self.thread.get(index)?,
            cpu: *self.cpu.get(index)?,
            event: *self.event.get(index)?,
            stack: *self.stack.get(index)?,
            syscall: *self.syscall.get(index)?,
            weight: *self.weight.get(index)?,
        })
    }

    /// Iterates over the samples in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Sample> {
        (0..self.len()).map(|i| Sample {
            time_ns: self.time_ns[i],
            thread: self.thread[i],
            cpu: self.cpu[i],
            event: self.event[i],
            stack: self.stack[i],
            syscall: self.syscall[i],
            weight: self.weight[i],
        })
    }
}

/// The key by which samples are merged.
type Kind = (ThreadId, EventId, Option<StackId>, Option<u32>);

/// Samples merged if they differ only in time and CPU: each has the time and the CPU of the first and
/// the total weight.
#[derive(Default)]
pub(crate) struct Sums {
    samples: Samples,
    known: HashMap<Kind, usize, BuildHasherDefault<FastHasher>>,
}

impl Sums {
    pub fn add(&mut self, sample: Sample) {
        let next = self.samples.len();
        let kind = (sample.thread, sample.event, sample.stack, sample.syscall);
        let at = *self.known.entry(kind).or_insert(next);
        match self.samples.weight.get_mut(at) {
            Some(known) => *known = known.saturating_add(sample.weight),
            None => self.samples.push(sample),
        }
    }

    pub fn samples(&self) -> &Samples {
        &self.samples
    }
}
