//! Weights of samples: their source for each event, counts of samples, and scaling to the kernel's counts.

use std::ops::Range;
use std::sync::Arc;

use plumb_capture_api::{Counted, TimeOff};
use plumb_profile::{EventId, Id, Profile, Sample};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::off_cpu::TimesOff;
use crate::output::Output;
use crate::processes::Processes;

/// The source of a sample's weight, unless it has a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// A constant.
    Each(u64),
    /// Data that the BPF program wrote with the record.
    Said,
}

/// Weights of samples, by event.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// Source of the weight, if it is not 1.
    weights: FxHashMap<EventId, Weight>,
    /// Later constants with the time from which they apply, in order.
    later: FxHashMap<EventId, Vec<(u64, u64)>>,
    /// The functions through which sampling programs are called.
    ways_in: FxHashMap<EventId, Arc<[Range<u64>]>>,
    /// Events whose samples of the idle task are kept: some events on a machine happen in it.
    keeps_idle: FxHashSet<EventId>,
    /// Number of samples so far by event, including those that are not kept and those counted in the kernel.
    samples: Vec<u64>,
    /// Off-CPU times of threads, if they are the weights of samples.
    times_off: Option<TimesOff>,
}

impl Weights {
    /// Adds an event.
    pub(crate) fn add_event(&mut self) {
        self.samples.push(0);
    }

    /// Number of samples of an event so far.
    pub(crate) fn samples_of(&self, event: EventId) -> u64 {
        self.samples.get(event.index()).copied().unwrap_or(0)
    }

    /// Counts new samples of an event.
    pub(crate) fn came(&mut self, event: EventId, samples: u64) {
        if let Some(so_far) = self.samples.get_mut(event.index()) {
            *so_far += samples;
        }
    }

    /// The source of the weight of an event's samples.
    pub(crate) fn of(&self, event: EventId) -> Weight {
        self.weights.get(&event).copied().unwrap_or(Weight::Each(1))
    }

    /// Sets the weight of an event's samples that have no period.
    pub(crate) fn weigh_each(&mut self, event: EventId, each: u64) {
        self.weights.insert(event, Weight::Each(each));
    }

    /// Changes that weight for samples from a time on, which is later than those of earlier changes.
    pub(crate) fn weigh_from(&mut self, event: EventId, since_ns: u64, each: u64) {
        self.later.entry(event).or_default().push((since_ns, each));
    }

    /// The changed weight of a sample at a time, if it has changed.
    pub(crate) fn changed(&self, event: EventId, time_ns: u64) -> Option<u64> {
        let changes = self.later.get(&event)?;
        changes.iter().rev().find(|&&(since_ns, _)| since_ns <= time_ns).map(|&(_, each)| each)
    }

    /// Takes the weight of an event's samples from the program that writes them, and is called through the functions `way_in`.
    pub(crate) fn weigh_as_said(&mut self, event: EventId, way_in: Option<Arc<[Range<u64>]>>) {
        self.weights.insert(event, Weight::Said);
        self.ways_in.extend(way_in.map(|way_in| (event, way_in)));
    }

    /// Weighs samples of an event by off-CPU time: all of it, or only the run-queue wait (`waited`).
    pub(crate) fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.times_off = Some(TimesOff::new(blocked, waited));
    }

    /// Keeps samples of an event in the idle task.
    pub(crate) fn keep_idle(&mut self, event: EventId) {
        self.keeps_idle.insert(event);
    }

    /// Whether they are kept.
    pub(crate) fn keeps_idle(&self, event: EventId) -> bool {
        self.keeps_idle.contains(&event)
    }

    /// Number of kernel frames, innermost first, that belong to the sampling itself: the program that took the sample, and the
    /// functions through which it was called.
    pub(crate) fn before(&self, event: EventId, kernel: &mut dyn Iterator<Item = u64>) -> usize {
        let Some(way_in) = self.ways_in.get(&event) else { return 0 };
        let program = usize::from(kernel.next().is_some());
        program + kernel.take_while(|address| way_in.iter().any(|range| range.contains(address))).count()
    }

    /// Adds further samples that equal `first`.
    pub(crate) fn add_counted(&mut self, out: &mut Output, first: Sample, counted: &Counted) {
        if counted.samples == 0 {
            return;
        }
        self.came(first.event, counted.samples);
        out.statistics.samples += counted.samples;
        out.statistics.complete += counted.samples;
        // One row per sample, as readers count rows.
        let each = counted.period / counted.samples;
        let rest = counted.period % counted.samples;
        let times = self.times_off.as_mut().filter(|times| times.is_of(first.event));
        let is_time = times.is_some();
        let into = times.map_or(&mut out.profile.samples, |times| &mut times.known);
        // The last time off ended then, and samples have the time of the beginning. A thread is off once at a time, so that the others were
        // before: without a gap, for want of their own times.
        let mut time_ns =
            if is_time { counted.time_ns.saturating_sub(counted.period) } else { counted.time_ns };
        for index in 0..counted.samples {
            let weight = each + if index == 0 { rest } else { 0 };
            into.push(Sample { time_ns, weight, ..first });
            time_ns += if is_time { weight } else { 0 };
        }
    }

    /// Adds a time off the CPU. `like`: a sample with the stack at its start; `None`: a record brings the stack, if any.
    pub(crate) fn add_time_off(&mut self, out: &mut Output, like: Option<Sample>, time: TimeOff) {
        if let Some(times) = &mut self.times_off {
            times.add(out, like, time);
        }
    }

    /// Adds summed times of a thread that have no stack.
    pub(crate) fn add_times_without_stack(&mut self, sum: &TimeOff) {
        self.times_off.iter_mut().for_each(|times| times.add_without(sum));
    }

    /// Assigns the off-CPU times reported so far to samples. Returns the samples whose time is still to come.
    pub(crate) fn take_times(&mut self, processes: &mut Processes, profile: &mut Profile) -> Vec<Sample> {
        self.times_off.as_mut().map(|times| times.take(processes, profile)).unwrap_or_default()
    }

    /// Assigns off-CPU times to samples, at the end.
    pub(crate) fn finish(&mut self, processes: &mut Processes, profile: &mut Profile) {
        if let Some(times) = self.times_off.take() {
            times.finish(processes, profile);
        }
    }
}

/// Scales an event's samples in a time range to a total weight of `counted`, each in proportion.
pub(crate) fn scale(profile: &mut Profile, event: EventId, time_ns: Range<u64>, counted: u64) {
    let samples = std::mem::take(&mut profile.samples);
    let is_scaled = |sample: &Sample| sample.event == event && time_ns.contains(&sample.time_ns);
    let sum: u128 = samples.iter().filter(is_scaled).map(|sample| u128::from(sample.weight)).sum();
    let (mut seen, mut given) = (0_u128, 0_u64);
    for mut sample in samples.iter() {
        if is_scaled(&sample) && sum > 0 {
            seen += u128::from(sample.weight);
            // At most `counted`, as `seen` is at most `sum`.
            let due = (seen * u128::from(counted) / sum) as u64;
            sample.weight = due - given;
            given = due;
        }
        profile.samples.push(sample);
    }
}

/// Scales the samples of successive time ranges. A range whose samples were all lost is represented by those of the others.
pub(crate) fn scale_parts(profile: &mut Profile, event: EventId, parts: &[(Range<u64>, u64)]) {
    let has_weight = |time: &Range<u64>| {
        let is_of_it = |sample: &Sample| sample.event == event && time.contains(&sample.time_ns);
        profile.samples.iter().filter(is_of_it).any(|sample| sample.weight > 0)
    };
    if parts.iter().any(|(time, counted)| *counted > 0 && !has_weight(time)) {
        let [Some(first), Some(last)] = [parts.first(), parts.last()] else { return };
        let counted = parts.iter().fold(0_u64, |sum, (_, counted)| sum.saturating_add(*counted));
        return scale(profile, event, first.0.start..last.0.end, counted);
    }
    parts.iter().for_each(|(time, counted)| scale(profile, event, time.clone(), *counted));
}
