//! Times off the processor meet the stacks that were taken when they began.
//!
//! The sample of a switch is taken on the same processor microseconds after the switch was measured, and a thread is switched out
//! only once at a time: a sample belongs to the last time of its thread that began before it, if no other sample has it. Times
//! without a sample (its stack was lost, or there were more than are sampled) go to their thread without a stack, so that the sum
//! is what was measured.

use plumb_profile::{Cut, EventId, Frame, Sample};
use rustc_hash::FxHashMap;

use super::Ingest;
use crate::off_cpu::TimeOff;

/// The most times that are kept. Those beyond are added up by thread, without their stacks.
const MAX_TIMES: usize = 4 << 20;
/// A sample is no later than this after its switch.
const LATE_NS: u64 = 5_000_000;

/// Times and what they become.
#[derive(Debug)]
pub(in crate::ingest) struct Times {
    /// The event that samples are taken of; it becomes that of the time blocked.
    blocked: EventId,
    waited: EventId,
    times: Vec<TimeOff>,
    /// By thread what has no stack: blocked, waited, and when last.
    without: FxHashMap<(u32, u32), (u64, u64, u64)>,
}

impl Times {
    pub fn new(blocked: EventId, waited: EventId) -> Self {
        Self { blocked, waited, times: Vec::new(), without: FxHashMap::default() }
    }

    fn add_without(&mut self, time: &TimeOff) {
        let sum = self.without.entry((time.pid, time.tid)).or_default();
        *sum = (sum.0 + time.blocked_ns, sum.1 + time.waited_ns, sum.2.max(time.out_ns));
    }
}

impl Ingest {
    /// Has samples of the event `blocked` weigh what is told by [`Ingest::time_off`], and those of `waited` what of it was spent
    /// without a processor only.
    pub(crate) fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.ways.times_off = Some(Times::new(blocked, waited));
    }

    /// Tells how long a thread was off.
    pub(crate) fn time_off(&mut self, time: TimeOff) {
        let Some(times) = &mut self.ways.times_off else { return };
        if times.times.len() < MAX_TIMES { times.times.push(time) } else { times.add_without(&time) }
    }

    /// Gives samples their times, at the end.
    pub(super) fn weigh_samples(&mut self) {
        let Some(mut off) = self.ways.times_off.take() else { return };
        off.times.sort_unstable_by_key(|time| (time.tid, time.out_ns));
        let mut taken = vec![false; off.times.len()];
        self.profile.samples.sort_by_time();
        let samples = std::mem::take(&mut self.profile.samples);
        for sample in samples.iter() {
            if sample.event != off.blocked {
                self.profile.samples.push(sample);
                continue;
            }
            let tid = self.profile.threads[sample.thread].tid;
            let after = off.times.partition_point(|time| (time.tid, time.out_ns) <= (tid, sample.time_ns));
            let found = after.checked_sub(1).filter(|&index| {
                let time = &off.times[index];
                time.tid == tid && sample.time_ns - time.out_ns < LATE_NS && !taken[index]
            });
            // Without a time it was too short to be told, or began as the recording ended.
            let Some(index) = found else { continue };
            taken[index] = true;
            let TimeOff { blocked_ns, waited_ns, .. } = off.times[index];
            self.push_time(sample, off.blocked, blocked_ns);
            self.push_time(sample, off.waited, waited_ns);
        }
        let times = std::mem::take(&mut off.times);
        times.iter().zip(taken).filter(|(_, taken)| !taken).for_each(|(time, _)| off.add_without(time));
        self.push_without(&off);
    }

    fn push_time(&mut self, sample: Sample, event: EventId, weight: u64) {
        if weight > 0 {
            self.profile.samples.push(Sample { event, weight, ..sample });
        }
    }

    /// One row for each thread whose times have no stacks.
    fn push_without(&mut self, off: &Times) {
        let mut threads: Vec<_> = off.without.iter().collect();
        threads.sort_unstable();
        for (&(pid, tid), &(blocked, waited, time_ns)) in threads {
            if !self.wants(pid) {
                continue;
            }
            if self.tasks.threads.get(&tid).is_none_or(|thread| thread.pid != pid) {
                self.meet_thread(pid, tid);
            }
            let marker = self.profile.frames.add(Frame::marker(Cut::NoUserStack, None));
            let stack = self.profile.add_stack(&[marker]);
            let (thread, _) = self.tasks.rows(&mut self.profile, tid);
            let sample = Sample { time_ns, thread, cpu: 0, event: off.blocked, stack, weight: 0 };
            self.push_time(sample, off.blocked, blocked);
            self.push_time(sample, off.waited, waited);
        }
    }
}
