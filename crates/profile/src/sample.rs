//! The samples themselves, one column a field: a long recording has millions.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::event::EventId;
use crate::process::ThreadId;
use crate::stack::StackId;
use crate::table::FastHasher;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, in nanoseconds on the recording's clock (see [`Meta::start_ns`](crate::Meta::start_ns)).
    pub time_ns: u64,
    /// Who ran.
    pub thread: ThreadId,
    /// On which processor.
    pub cpu: u32,
    /// Which event fired.
    pub event: EventId,
    /// Where it was. `None`: nothing is known of the stack.
    pub stack: Option<StackId>,
    /// Number of the system call that it interrupted in the kernel, as the recorded machine numbers them. `None`: none, or not
    /// known; then the functions of the kernel's part of the stack may tell.
    pub syscall: Option<u32>,
    /// How much of the event's unit the sample stands for (perf's period).
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

    /// Gives a sample another stack, if there is such a sample.
    pub fn set_stack(&mut self, index: usize, stack: Option<StackId>) {
        if let Some(known) = self.stack.get_mut(index) {
            *known = stack;
        }
    }

    /// Puts the samples into the order of their time; those of the same time stay in their order.
    pub fn sort_by_time(&mut self) {
        if self.time_ns.is_sorted() {
            return;
        }
        let mut samples: Vec<Sample> = self.iter().collect();
        samples.sort_by_key(|sample| sample.time_ns);
        *self = Samples::default();
        samples.into_iter().for_each(|sample| self.push(sample));
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.time_ns.len()
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.time_ns.is_empty()
    }

    /// Sample number `index`, counted from 0.
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

    /// The samples in order.
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

/// What samples that are one have in common.
type Kind = (ThreadId, EventId, Option<StackId>, Option<u32>);

/// Samples of which those that differ in nothing but time and processor are one, at the time and on the processor of the first and
/// with the weight of all.
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
