//! Times off the processor become samples.
//!
//! Times whose stack was walked in the kernel come with it, or counted by it. The record with a copy of any other stack is written
//! on the same processor microseconds after its time was told, and a thread is off only once at a time: such a sample belongs to
//! the last time of its thread that was told before it, if no other sample has it. Times without a sample (its stack was lost, or
//! there were more than get one) go to their thread without a stack, so that the sum is what was measured.

use plumb_capture_api::TimeOff;
use plumb_profile::{EventId, Frame, Sample, Samples, Truncation};
use rustc_hash::FxHashMap;

use super::Ingest;

/// The most times that are kept. Those beyond are added up by thread, without their stacks.
const MAX_TIMES: usize = 4 << 20;
/// A sample is no later than this after its switch.
const LATE_NS: u64 = 5_000_000;

/// Times and what they become.
#[derive(Debug)]
pub(crate) struct Times {
    /// The event that samples are taken of; it becomes that of the time blocked.
    blocked: EventId,
    waited: EventId,
    /// Samples that have their times.
    pub known: Samples,
    /// Times that may have a sample, each.
    times: Vec<TimeOff>,
    /// By thread what has no stack: blocked, waited, and when last.
    without: FxHashMap<(u32, u32), (u64, u64, u64)>,
}

impl Times {
    pub fn new(blocked: EventId, waited: EventId) -> Self {
        Self { blocked, waited, known: Samples::default(), times: Vec::new(), without: FxHashMap::default() }
    }

    fn push(&mut self, sample: Sample, time: &TimeOff) {
        let parts = [(self.blocked, time.blocked_ns), (self.waited, time.waited_ns)];
        for (event, weight) in parts.into_iter().filter(|(_, weight)| *weight > 0) {
            self.known.push(Sample { event, weight, ..sample });
        }
    }

    fn add_without(&mut self, time: &TimeOff) {
        let sum = self.without.entry((time.pid, time.tid)).or_default();
        *sum = (sum.0 + time.blocked_ns, sum.1 + time.waited_ns, sum.2.max(time.out_ns));
    }
}

impl Ingest {
    /// Has samples of the event `blocked` weigh what is told by [`Ingest::time_off`], and those of `waited` what of it was spent
    /// without a processor only.
    pub fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.ways.times_off = Some(Times::new(blocked, waited));
    }

    /// Tells how long a thread was off. `like`: a sample with the stack at which that began; `None`: if it has any, a record tells of it.
    pub fn time_off(&mut self, like: Option<Sample>, time: TimeOff) {
        let Some(times) = &mut self.ways.times_off else { return };
        match like {
            Some(like) => {
                times.push(Sample { time_ns: time.out_ns, ..like }, &time);
                self.statistics.samples += 1;
                self.statistics.complete += 1;
            }
            None if times.times.len() < MAX_TIMES => times.times.push(time),
            None => times.add_without(&time),
        }
    }

    /// Tells of times of a thread, added up, that have no stack.
    pub fn times_without_stack(&mut self, sum: &TimeOff) {
        self.ways.times_off.iter_mut().for_each(|times| times.add_without(sum));
    }

    /// Gives samples their times, at the end.
    pub(super) fn weigh_samples(&mut self) {
        let Some(mut off) = self.ways.times_off.take() else { return };
        off.times.sort_unstable_by_key(|time| (time.tid, time.out_ns));
        let mut taken = vec![false; off.times.len()];
        self.profile.samples.sort_by_time();
        let samples = std::mem::take(&mut self.profile.samples);
        for sample in samples.iter() {
            let tid = self.profile.threads[sample.thread].tid;
            let after = off.times.partition_point(|time| (time.tid, time.out_ns) <= (tid, sample.time_ns));
            let found = after.checked_sub(1).filter(|&index| {
                let time = &off.times[index];
                time.tid == tid && sample.time_ns - time.out_ns < LATE_NS && !taken[index]
            });
            // Without a time it began as the recording ended.
            let Some(index) = found else { continue };
            taken[index] = true;
            off.push(sample, &off.times[index].clone());
        }
        let times = std::mem::take(&mut off.times);
        times.iter().zip(taken).filter(|(_, taken)| !taken).for_each(|(time, _)| off.add_without(time));
        self.push_without(&mut off);
        self.profile.samples = off.known;
    }

    /// One row for each thread whose times have no stacks.
    fn push_without(&mut self, off: &mut Times) {
        let mut threads: Vec<_> = off.without.drain().collect();
        threads.sort_unstable();
        for ((pid, tid), (blocked_ns, waited_ns, time_ns)) in threads {
            if !self.wants(pid) {
                continue;
            }
            if self.tasks.threads.get(&tid).is_none_or(|thread| thread.pid != pid) {
                self.meet_thread(pid, tid);
            }
            let marker = self.profile.frames.add(Frame::marker(Truncation::NoUserStack, None));
            let stack = self.profile.add_stack(&[marker]);
            let (thread, _) = self.tasks.rows(&mut self.profile, tid);
            let sample =
                Sample { time_ns, thread, cpu: 0, event: off.blocked, stack, syscall: None, weight: 0 };
            off.push(sample, &TimeOff { blocked_ns, waited_ns, ..TimeOff::default() });
        }
    }
}
