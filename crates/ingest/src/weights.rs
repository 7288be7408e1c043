//! What samples count: how each event's say it, how many there were, and how they are scaled to what the kernel counted.

use std::ops::Range;
use std::sync::Arc;

use plumb_capture_api::{Counted, TimeOff};
use plumb_profile::{EventId, Id, Profile, Sample};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::off_cpu::TimesOff;
use crate::output::Output;
use crate::processes::Processes;

/// How a record says what its sample counts, unless its period does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It counts so much.
    Each(u64),
    /// By what the program wrote with it whose the record is.
    Said,
}

/// What samples count, by event.
#[derive(Debug, Default)]
pub(crate) struct Weights {
    /// How samples say what they count, if they don't count 1.
    weights: FxHashMap<EventId, Weight>,
    /// The functions through which programs are called that take samples.
    ways_in: FxHashMap<EventId, Arc<[Range<u64>]>>,
    /// Events of which samples of the idle task are kept: what happens on a machine may well happen in it.
    keeps_idle: FxHashSet<EventId>,
    /// In the events' order: samples so far, those that are not kept and those that were counted elsewhere included.
    samples: Vec<u64>,
    /// How long threads were off, where that is what samples weigh.
    times_off: Option<TimesOff>,
}

impl Weights {
    /// There is one more event.
    pub(crate) fn add_event(&mut self) {
        self.samples.push(0);
    }

    /// Samples of an event so far.
    pub(crate) fn samples_of(&self, event: EventId) -> u64 {
        self.samples.get(event.index()).copied().unwrap_or(0)
    }

    /// Samples of an event came.
    pub(crate) fn came(&mut self, event: EventId, samples: u64) {
        if let Some(so_far) = self.samples.get_mut(event.index()) {
            *so_far += samples;
        }
    }

    /// How a record of an event says what its sample counts.
    pub(crate) fn of(&self, event: EventId) -> Weight {
        self.weights.get(&event).copied().unwrap_or(Weight::Each(1))
    }

    /// Samples of an event count `each` where they don't say themselves what they count.
    pub(crate) fn weigh_each(&mut self, event: EventId, each: u64) {
        self.weights.insert(event, Weight::Each(each));
    }

    /// Samples of an event count what a program says that writes them, and is called through the functions `way_in`.
    pub(crate) fn weigh_as_said(&mut self, event: EventId, way_in: Option<Arc<[Range<u64>]>>) {
        self.weights.insert(event, Weight::Said);
        self.ways_in.extend(way_in.map(|way_in| (event, way_in)));
    }

    /// Samples of an event weigh how long threads were off, all of it or only what of it they `waited` for a processor.
    pub(crate) fn weigh_by_time_off(&mut self, blocked: EventId, waited: EventId) {
        self.times_off = Some(TimesOff::new(blocked, waited));
    }

    /// Has samples of an event in the idle task kept.
    pub(crate) fn keep_idle(&mut self, event: EventId) {
        self.keeps_idle.insert(event);
    }

    /// Whether these are kept.
    pub(crate) fn keeps_idle(&self, event: EventId) -> bool {
        self.keeps_idle.contains(&event)
    }

    /// How many of these frames of the kernel, innermost first, are no part of what happened: a program that took the sample, and the
    /// functions through which it was called.
    pub(crate) fn before(&self, event: EventId, kernel: &mut dyn Iterator<Item = u64>) -> usize {
        let Some(way_in) = self.ways_in.get(&event) else { return 0 };
        let program = usize::from(kernel.next().is_some());
        program + kernel.take_while(|address| way_in.iter().any(|range| range.contains(address))).count()
    }

    /// Adds samples that are like one before.
    pub(crate) fn add_counted(&mut self, out: &mut Output, first: Sample, counted: &Counted) {
        if counted.samples == 0 {
            return;
        }
        self.came(first.event, counted.samples);
        out.statistics.samples += counted.samples;
        out.statistics.complete += counted.samples;
        // One row for each, as readers count rows.
        let each = counted.period / counted.samples;
        let rest = counted.period % counted.samples;
        let times = self.times_off.as_mut().filter(|times| times.is_of(first.event));
        let into = times.map_or(&mut out.profile.samples, |times| &mut times.known);
        for index in 0..counted.samples {
            let weight = each + if index == 0 { rest } else { 0 };
            into.push(Sample { time_ns: counted.time_ns, weight, ..first });
        }
    }

    /// Takes how long a thread was off. `like`: a sample with the stack at which that began; `None`: if it has any, a record tells of it.
    pub(crate) fn add_time_off(&mut self, out: &mut Output, like: Option<Sample>, time: TimeOff) {
        if let Some(times) = &mut self.times_off {
            times.add(out, like, time);
        }
    }

    /// Takes times of a thread, added up, that have no stack.
    pub(crate) fn add_times_without_stack(&mut self, sum: &TimeOff) {
        self.times_off.iter_mut().for_each(|times| times.add_without(sum));
    }

    /// Gives samples the times that their threads were off and that were told so far. Gives back those whose time is still to come.
    pub(crate) fn take_times(&mut self, processes: &mut Processes, profile: &mut Profile) -> Vec<Sample> {
        self.times_off.as_mut().map(|times| times.take(processes, profile)).unwrap_or_default()
    }

    /// Gives samples the times that their threads were off, at the end.
    pub(crate) fn finish(&mut self, processes: &mut Processes, profile: &mut Profile) {
        if let Some(times) = self.times_off.take() {
            times.finish(processes, profile);
        }
    }
}

/// Has an event's samples of a time weigh `counted` together, each in proportion.
pub(crate) fn scale(profile: &mut Profile, event: EventId, time_ns: Range<u64>, counted: u64) {
    let samples = std::mem::take(&mut profile.samples);
    let is_scaled = |sample: &Sample| sample.event == event && time_ns.contains(&sample.time_ns);
    let sum: u128 = samples.iter().filter(is_scaled).map(|sample| u128::from(sample.weight)).sum();
    let (mut seen, mut given) = (0_u128, 0_u64);
    for mut sample in samples.iter() {
        if is_scaled(&sample) && sum > 0 {
            seen += u128::from(sample.weight);
            // No more than `counted`, as `seen` is no more than `sum`.
            let due = (seen * u128::from(counted) / sum) as u64;
            sample.weight = due - given;
            given = due;
        }
        profile.samples.push(sample);
    }
}

/// Likewise for two times, one after the other. Where all samples of one were lost, those of the other stand for it as well.
pub(crate) fn scale_parts(profile: &mut Profile, event: EventId, parts: [(Range<u64>, u64); 2]) {
    let has_weight = |time: &Range<u64>| {
        let is_of_it = |sample: &Sample| sample.event == event && time.contains(&sample.time_ns);
        profile.samples.iter().filter(is_of_it).any(|sample| sample.weight > 0)
    };
    if parts.iter().any(|(time, counted)| *counted > 0 && !has_weight(time)) {
        let [(first, before), (second, since)] = parts;
        return scale(profile, event, first.start..second.end, before.saturating_add(since));
    }
    parts.into_iter().for_each(|(time, counted)| scale(profile, event, time, counted));
}
