//! Turns off-CPU times into samples.
//!
//! A time whose stack was unwound in the kernel comes with that stack or its count. Any other stack is copied to a record, which is written
//! on the same CPU microseconds after the time was reported, and a thread is off the CPU only once at a time: such a sample belongs to
//! the last time of its thread reported before it, unless another sample has it. Times without a sample (the stack was lost, or
//! more times than stacks are recorded) are added to their thread without a stack, so that the sum is what was measured.

use plumb_capture_api::TimeOff;
use plumb_profile::{EventId, Frame, Profile, Sample, Samples, Truncation};
use rustc_hash::FxHashMap;

use crate::output::Output;
use crate::processes::Processes;

/// Most times that are kept. Further ones are summed by thread, without their stacks.
const MAX_TIMES: usize = 4 << 20;
/// Most samples that wait for their time while finished times are taken out.
const MAX_WITHOUT_TIME: usize = 64 << 10;
/// A sample comes at most this long after its context switch.
const LATE_NS: u64 = 5_000_000;

/// Off-CPU times, and the samples made of them.
#[derive(Debug)]
pub(crate) struct TimesOff {
    /// The event of the samples; it becomes that of blocked time.
    blocked: EventId,
    waited: EventId,
    /// Samples with known times.
    pub(crate) known: Samples,
    /// Times that may each get a sample.
    times: Vec<TimeOff>,
    /// Times without a stack by thread: blocked, waited, and the last time stamp.
    without: FxHashMap<(u32, u32), (u64, u64, u64)>,
}

impl TimesOff {
    /// Samples of the event `blocked` weigh the whole time, those of `waited` only the run-queue wait in it.
    pub(crate) fn new(blocked: EventId, waited: EventId) -> Self {
        Self { blocked, waited, known: Samples::default(), times: Vec::new(), without: FxHashMap::default() }
    }

    /// Whether the weights of an event's samples are off-CPU times.
    pub(crate) fn is_of(&self, event: EventId) -> bool {
        event == self.blocked || event == self.waited
    }

    fn push(&mut self, sample: Sample, time: &TimeOff) {
        let parts = [(self.blocked, time.blocked_ns), (self.waited, time.waited_ns)];
        for (event, weight) in parts.into_iter().filter(|(_, weight)| *weight > 0) {
            self.known.push(Sample { event, weight, ..sample });
        }
    }

    /// Adds summed times of a thread that have no stack.
    pub(crate) fn add_without(&mut self, time: &TimeOff) {
        let sum = self.without.entry((time.pid, time.tid)).or_default();
        *sum = (sum.0 + time.blocked_ns, sum.1 + time.waited_ns, sum.2.max(time.out_ns));
    }

    /// Adds a time off the CPU. `like`: a sample with the stack at its start; `None`: a record brings the stack, if any.
    pub(crate) fn add(&mut self, out: &mut Output, like: Option<Sample>, time: TimeOff) {
        match like {
            Some(like) => {
                self.push(Sample { time_ns: time.out_ns, ..like }, &time);
                out.statistics.samples += 1;
                out.statistics.complete += 1;
            }
            None if self.times.len() < MAX_TIMES => self.times.push(time),
            None => self.add_without(&time),
        }
    }

    /// Assigns times to samples, at the end.
    pub(crate) fn finish(mut self, processes: &mut Processes, profile: &mut Profile) {
        // A sample without a time belongs to one that was ongoing at the end of the recording.
        self.match_times(profile);
        let times = std::mem::take(&mut self.times);
        times.iter().for_each(|time| self.add_without(time));
        self.push_without(processes, profile);
        profile.samples = self.known;
    }

    /// Assigns the times reported so far to samples, during the recording. Returns the newest samples, whose time may still be reported.
    pub(crate) fn take(&mut self, processes: &mut Processes, profile: &mut Profile) -> Vec<Sample> {
        let mut without_time = self.match_times(profile);
        without_time.drain(..without_time.len().saturating_sub(MAX_WITHOUT_TIME));
        let now_ns = self.times.iter().map(|time| time.out_ns).max().unwrap_or(0);
        let times = std::mem::take(&mut self.times);
        // The record of any older time has arrived or was lost.
        let (new, old): (Vec<_>, Vec<_>) = times.into_iter().partition(|time| now_ns - time.out_ns < LATE_NS);
        self.times = new;
        old.iter().for_each(|time| self.add_without(time));
        self.push_without(processes, profile);
        profile.samples = std::mem::take(&mut self.known);
        without_time
    }

    /// Assigns times to samples. Unassigned times stay in `times`; samples without a time are returned.
    fn match_times(&mut self, profile: &mut Profile) -> Vec<Sample> {
        self.times.sort_unstable_by_key(|time| (time.tid, time.out_ns));
        let mut taken = vec![false; self.times.len()];
        profile.samples.sort_by_time();
        let samples = std::mem::take(&mut profile.samples);
        let mut without_time = Vec::new();
        for sample in samples.iter() {
            // Other events are recorded beside.
            if sample.event != self.blocked {
                self.known.push(sample);
                continue;
            }
            let tid = profile.threads[sample.thread].tid;
            let after = self.times.partition_point(|time| (time.tid, time.out_ns) <= (tid, sample.time_ns));
            let found = after.checked_sub(1).filter(|&index| {
                let time = &self.times[index];
                time.tid == tid && sample.time_ns - time.out_ns < LATE_NS && !taken[index]
            });
            let Some(index) = found else {
                without_time.push(sample);
                continue;
            };
            taken[index] = true;
            self.push(sample, &self.times[index].clone());
        }
        let mut taken = taken.into_iter();
        self.times.retain(|_| taken.next() != Some(true));
        without_time
    }

    /// Adds one row for each thread with times that have no stacks.
    fn push_without(&mut self, processes: &mut Processes, profile: &mut Profile) {
        let mut threads: Vec<_> = self.without.drain().collect();
        threads.sort_unstable();
        for ((pid, tid), (blocked_ns, waited_ns, time_ns)) in threads {
            if !processes.scope.wants(pid) {
                continue;
            }
            processes.meet_thread_of(pid, tid);
            let marker = profile.frames.add(Frame::marker(Truncation::NoUserStack, None));
            let stack = profile.add_stack(&[marker]);
            let (thread, _) = processes.tasks.rows(profile, tid);
            let sample =
                Sample { time_ns, thread, cpu: 0, event: self.blocked, stack, syscall: None, weight: 0 };
            self.push(sample, &TimeOff { blocked_ns, waited_ns, ..TimeOff::default() });
        }
    }
}
