//! Times off the processor become samples.
//!
//! Times whose stack was walked in the kernel come with it, or counted by it. The record with a copy of any other stack is written
//! on the same processor microseconds after its time was told, and a thread is off only once at a time: such a sample belongs to
//! the last time of its thread that was told before it, if no other sample has it. Times without a sample (its stack was lost, or
//! there were more than get one) go to their thread without a stack, so that the sum is what was measured.

use plumb_capture_api::TimeOff;
use plumb_profile::{EventId, Frame, Profile, Sample, Samples, Truncation};
use rustc_hash::FxHashMap;

use crate::output::Output;
use crate::processes::Processes;

/// The most times that are kept. Those beyond are added up by thread, without their stacks.
const MAX_TIMES: usize = 4 << 20;
/// The most samples that wait for their time while what was told is taken out.
const MAX_WITHOUT_TIME: usize = 64 << 10;
/// A sample is no later than this after its switch.
const LATE_NS: u64 = 5_000_000;

/// Times and what they become.
#[derive(Debug)]
pub(crate) struct TimesOff {
    /// The event that samples are taken of; it becomes that of the time blocked.
    blocked: EventId,
    waited: EventId,
    /// Samples that have their times.
    pub(crate) known: Samples,
    /// Times that may have a sample, each.
    times: Vec<TimeOff>,
    /// By thread what has no stack: blocked, waited, and when last.
    without: FxHashMap<(u32, u32), (u64, u64, u64)>,
}

impl TimesOff {
    /// Samples of the event `blocked` weigh what is told, and those of `waited` what of it was spent without a processor only.
    pub(crate) fn new(blocked: EventId, waited: EventId) -> Self {
        Self { blocked, waited, known: Samples::default(), times: Vec::new(), without: FxHashMap::default() }
    }

    /// Whether samples of an event weigh times off the processor.
    pub(crate) fn is_of(&self, event: EventId) -> bool {
        event == self.blocked || event == self.waited
    }

    fn push(&mut self, sample: Sample, time: &TimeOff) {
        let parts = [(self.blocked, time.blocked_ns), (self.waited, time.waited_ns)];
        for (event, weight) in parts.into_iter().filter(|(_, weight)| *weight > 0) {
            self.known.push(Sample { event, weight, ..sample });
        }
    }

    /// Takes times of a thread, added up, that have no stack.
    pub(crate) fn add_without(&mut self, time: &TimeOff) {
        let sum = self.without.entry((time.pid, time.tid)).or_default();
        *sum = (sum.0 + time.blocked_ns, sum.1 + time.waited_ns, sum.2.max(time.out_ns));
    }

    /// Takes how long a thread was off. `like`: a sample with the stack at which that began; `None`: if it has any, a record tells of it.
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

    /// Gives samples their times, at the end.
    pub(crate) fn finish(mut self, processes: &mut Processes, profile: &mut Profile) {
        // Without a time it began as the recording ended.
        self.match_times(profile);
        let times = std::mem::take(&mut self.times);
        times.iter().for_each(|time| self.add_without(time));
        self.push_without(processes, profile);
        profile.samples = self.known;
    }

    /// Gives samples the times that were told so far, while the recording goes on. Gives back those whose time may still be told: the newest.
    pub(crate) fn take(&mut self, processes: &mut Processes, profile: &mut Profile) -> Vec<Sample> {
        let mut without_time = self.match_times(profile);
        without_time.drain(..without_time.len().saturating_sub(MAX_WITHOUT_TIME));
        let now_ns = self.times.iter().map(|time| time.out_ns).max().unwrap_or(0);
        let times = std::mem::take(&mut self.times);
        // The record of any other is there or was lost.
        let (new, old): (Vec<_>, Vec<_>) = times.into_iter().partition(|time| now_ns - time.out_ns < LATE_NS);
        self.times = new;
        old.iter().for_each(|time| self.add_without(time));
        self.push_without(processes, profile);
        profile.samples = std::mem::take(&mut self.known);
        without_time
    }

    /// Gives samples their times. What is left is in `times`; gives back the samples that have none.
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

    /// One row for each thread whose times have no stacks.
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
