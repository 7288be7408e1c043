//! The events of a recording: maps samples to events, changes all of them at once, and scales samples to the kernel's counts.

use linux_perf_event_reader::constants::PERF_SAMPLE_IDENTIFIER;
use linux_perf_event_reader::{RawData, RawEventRecord, RecordType};
use plumb_capture_api::{KernelUnwinder, ProbeCounts, SamplingRate};
use plumb_ingest::SampleWeights;
use plumb_profile::EventId;
use rustc_hash::FxHashMap;

use crate::attr::Sampling;
use crate::error::Error;
use crate::events::Events;
use crate::limit::Limit;
use crate::setup::SampledEvent;

/// One event of the recording.
pub(super) struct Sampled {
    /// The event's ID in the profile; of a measurement the first one's.
    pub id: EventId,
    /// Number that programs in the kernel know the event by; `None` for a measurement, which has several.
    pub number: Option<usize>,
    /// Number of a measurement's events, whose IDs follow one another; otherwise 0.
    pub events_of_measure: usize,
    pub events: Events,
    /// The limit until which each occurrence is a sample.
    pub limit: Option<Limit>,
}

impl Sampled {
    /// Whether the total weight of its samples is the kernel's count: true for events other than clocks and hardware
    /// counters.
    pub fn is_scaled(&self) -> bool {
        self.events.sampling().counter.trigger().is_some_and(|trigger| !trigger.is_hardware())
    }

    /// Whether the event is sampled by frequency, so that not every occurrence need be a sample.
    pub fn is_by_frequency(&self) -> bool {
        self.limit.is_some() || matches!(self.events.sampling().pace, SamplingRate::Frequency(_))
    }

    /// Whether it is a clock, sampled by frequency.
    pub fn is_clock(&self) -> bool {
        let sampling = self.events.sampling();
        sampling.counter.trigger().is_none() && matches!(sampling.pace, SamplingRate::Frequency(_))
    }

    /// Description of the event for the setup.
    pub fn setup(&self) -> SampledEvent {
        let Sampling { counter, code, pace, .. } = self.events.sampling();
        SampledEvent { id: self.id, counter: counter.clone(), code: *code, pace: *pace }
    }

    /// The counts of an event whose samples a program takes.
    pub fn probe_counts(&self, kernel: Option<&dyn KernelUnwinder>) -> Option<ProbeCounts> {
        kernel?.probe_counts(self.number?).filter(|_| self.events.is_taken())
    }

    /// Number of occurrences of an event, as far as known.
    pub fn counted(&self, kernel: Option<&dyn KernelUnwinder>) -> Option<u64> {
        match self.events.is_taken() {
            true => self.probe_counts(kernel).map(|passed| passed.times),
            false => self.events.counted(),
        }
    }

    /// Number of occurrences of an event in the target; `None` for a clock, or if unknown. `of_target`: the events count only the target.
    pub fn occurrences(&self, kernel: Option<&dyn KernelUnwinder>, of_target: bool) -> Option<u64> {
        let trigger = self.events.sampling().counter.trigger();
        let is_known = trigger.is_some_and(|trigger| !trigger.is_measure()) && of_target;
        (self.events.is_taken() || is_known).then(|| self.counted(kernel))?
    }

    /// Scales the weights of its samples to the kernel's count.
    fn weigh(&self, weights: &mut SampleWeights<'_>, kernel: Option<&dyn KernelUnwinder>, of_target: bool) {
        let (events, counted) = (&self.events, self.counted(kernel));
        if events.is_taken() {
            // Only lost occurrences are in no sample, and those after the last sample of each CPU.
            let counted = counted.filter(|_| self.is_by_frequency());
            counted.iter().for_each(|&counted| weights.scale(self.id, 0..u64::MAX, counted));
            return;
        }
        if !of_target {
            return;
        }
        if !self.is_scaled() {
            // The weight in a sample may be the period before a change, as for a counter used as a clock.
            let counted = counted.filter(|_| events.sampling().counter.is_hardware());
            counted.iter().for_each(|&counted| weights.scale_down(self.id, counted));
            return;
        }
        // Programs have the period of each sample, and sum samples of any time.
        let parts = if events.is_walked_in_kernel() { None } else { events.parts() };
        if let Some(parts) = parts {
            weights.scale_parts(self.id, &parts);
        } else if let Some(counted) = counted.filter(|_| self.is_by_frequency()) {
            weights.scale(self.id, 0..u64::MAX, counted);
        }
    }
}

/// The events of a recording: at least one; one of them reports mappings and processes.
pub(super) struct SampledEvents {
    all: Vec<Sampled>,
    /// Events by the ID in samples. Records without an ID belong to the first event. IDs of events that were replaced stay.
    ids: FxHashMap<u64, EventId>,
}

impl SampledEvents {
    /// Maps the samples of these events.
    pub fn new(all: Vec<Sampled>) -> Self {
        let mut events = Self { all, ids: FxHashMap::default() };
        events.learn();
        events
    }

    /// The events, in the order of the options.
    pub fn iter(&self) -> std::slice::Iter<'_, Sampled> {
        self.all.iter()
    }

    /// The first event.
    pub fn first(&self) -> &Sampled {
        &self.all[0]
    }

    /// The event at a place in the order of the options.
    pub fn at(&self, index: usize) -> &Sampled {
        &self.all[index]
    }

    /// The clock, if one is sampled.
    pub fn clock(&self) -> Option<&Sampled> {
        self.iter().find(|one| one.is_clock())
    }

    /// The event of a record.
    pub fn of(&self, record: &RawEventRecord<'_>) -> EventId {
        let first = self.first().id;
        if record.record_type != RecordType::SAMPLE {
            return first;
        }
        identifier(record).and_then(|id| self.ids.get(&id).copied()).unwrap_or(first)
    }

    /// Whether the weight of samples is known only at the end: that of events that are not clocks.
    pub fn are_weighed_later(&self) -> bool {
        self.iter().any(|one| one.is_scaled() || one.events.is_taken())
    }

    /// Number of samples that the kernel dropped so far, as counted by the events and by the programs that take their samples.
    pub fn lost(&self, kernel: Option<&dyn KernelUnwinder>) -> u64 {
        let lost_here = |one: &Sampled| one.probe_counts(kernel).map_or(0, |passed| passed.lost);
        self.iter().map(|one| one.events.lost() + lost_here(one)).sum()
    }

    /// Stops all events.
    pub fn stop(&self) {
        self.iter().for_each(|one| one.events.stop());
    }

    /// Changes events, and learns the IDs of those that were replaced.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut [Sampled]) -> R) -> R {
        let result = change(&mut self.all);
        self.learn();
        result
    }

    /// Replaces the events by ones that copy `bytes` of the stack.
    pub fn grow(&mut self, bytes: u32) -> Result<(), Error> {
        self.change(|all| all.iter_mut().try_for_each(|one| one.events.grow(bytes)))
    }

    /// Detaches the programs that decide on samples: all stacks are copied from now on. An error: of those events whose programs stay.
    pub fn go_on_without(&mut self) -> Result<(), Error> {
        let detach = |one: &mut Sampled| one.events.go_on_without();
        let decided =
            |all: &mut [Sampled]| all.iter_mut().filter(|one| one.events.is_decided()).try_for_each(detach);
        self.change(decided)
    }

    /// Changes the frequency of clocks.
    pub fn set_frequency(&mut self, hz: u32, weights: &mut SampleWeights<'_>) -> Result<(), Error> {
        for one in &mut self.all {
            if one.is_clock() && !one.events.sampling().counter.is_hardware() {
                one.events.set_frequency(hz)?;
                one.events.sampling().period().iter().for_each(|&each| weights.weigh_each(one.id, each));
            }
        }
        self.learn();
        Ok(())
    }

    /// Scales the weights of samples to the kernel's counts. `of_target`: the events count only the target.
    pub fn weigh(
        &self,
        weights: &mut SampleWeights<'_>,
        kernel: Option<&dyn KernelUnwinder>,
        of_target: bool,
    ) {
        self.iter().for_each(|one| one.weigh(weights, kernel, of_target));
    }

    /// Learns the IDs in samples of the events.
    fn learn(&mut self) {
        if self.all.len() > 1 {
            self.all.iter().for_each(|one| self.ids.extend(one.events.ids().map(|id| (id, one.id))));
        }
    }
}

fn identifier(sample: &RawEventRecord<'_>) -> Option<u64> {
    if sample.parse_info.sample_format.bits() & PERF_SAMPLE_IDENTIFIER == 0 {
        return None;
    }
    match sample.data {
        RawData::Single(bytes) => Some(u64::from_ne_bytes(*bytes.first_chunk()?)),
        RawData::Split(..) => None,
    }
}
