//! The events of a recording: maps samples to events, and scales them to the kernel's counts.

use linux_perf_event_reader::constants::PERF_SAMPLE_IDENTIFIER;
use linux_perf_event_reader::{RawData, RawEventRecord, RecordType};
use plumb_capture_api::SamplingRate;
use plumb_profile::EventId;
use rustc_hash::FxHashMap;

use crate::attr::Sampling;
use crate::events::Events;
use crate::limit::Limit;
use crate::setup::SampledEvent;

/// One event of the recording.
pub(super) struct Sampled {
    /// The event's ID in the profile; of a measurement the first one's.
    pub id: EventId,
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

    /// Whether programs in the kernel measure it.
    pub fn is_measure(&self) -> bool {
        self.events.sampling().is_measure()
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
}

/// Maps records to events.
#[derive(Default)]
pub(super) struct Belonging {
    /// Events by the ID in samples. Records without an ID belong to the first event.
    ids: FxHashMap<u64, EventId>,
}

impl Belonging {
    /// Learns the IDs of these events.
    pub fn of_events(all: &[Sampled]) -> Self {
        let mut belonging = Self::default();
        belonging.learn(all);
        belonging
    }

    /// Learns the IDs in samples of the events. Earlier ones stay.
    pub fn learn(&mut self, all: &[Sampled]) {
        if all.len() > 1 {
            all.iter().for_each(|one| self.ids.extend(one.events.ids().map(|id| (id, one.id))));
        }
    }

    /// The event of a record; `first`: the event of records without an ID.
    pub fn of(&self, record: &RawEventRecord<'_>, first: EventId) -> EventId {
        if record.record_type != RecordType::SAMPLE {
            return first;
        }
        identifier(record).and_then(|id| self.ids.get(&id).copied()).unwrap_or(first)
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
