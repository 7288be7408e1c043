//! The events of a recording: which of them a sample belongs to, and how often each happened.

use linux_perf_event_reader::constants::PERF_SAMPLE_IDENTIFIER;
use linux_perf_event_reader::{RawData, RawEventRecord, RecordType};
use plumb_capture_api::SamplingRate;
use plumb_profile::EventId;
use rustc_hash::FxHashMap;

use crate::attr::Sampling;
use crate::events::Events;
use crate::limit::Limit;
use crate::setup::SampledEvent;
use crate::trigger::Trigger;

/// One event.
pub(super) struct Sampled {
    /// What the profile calls it.
    pub id: EventId,
    pub events: Events,
    /// Until when each occurrence is a sample.
    pub limit: Option<Limit>,
}

impl Sampled {
    /// Whether what the kernel counted is what its samples are to weigh together: of what is no clock and not counted by the
    /// processor.
    pub fn is_scaled(&self) -> bool {
        self.events.sampling().counter.trigger().is_some_and(|trigger| !trigger.is_hardware())
    }

    /// Whether not each time that it happens is a sample, or not each single one must be.
    pub fn is_by_frequency(&self) -> bool {
        self.limit.is_some() || matches!(self.events.sampling().pace, SamplingRate::Frequency(_))
    }

    /// Whether it is time off the processor, which a program tells of.
    pub fn is_told(&self) -> bool {
        self.events.sampling().counter.trigger().is_some_and(Trigger::is_told)
    }

    /// Whether it goes by the passing of processor time, by frequency.
    pub fn is_clock(&self) -> bool {
        let sampling = self.events.sampling();
        sampling.counter.trigger().is_none() && matches!(sampling.pace, SamplingRate::Frequency(_))
    }

    /// What the setup says of it.
    pub fn setup(&self) -> SampledEvent {
        let Sampling { counter, code, pace, .. } = self.events.sampling();
        SampledEvent { id: self.id, counter: counter.clone(), code: *code, pace: *pace }
    }
}

/// Of which event records are.
#[derive(Default)]
pub(super) struct Belonging {
    /// By what samples say of themselves. The first event has all that say nothing.
    ids: FxHashMap<u64, EventId>,
}

impl Belonging {
    /// What samples of these events say.
    pub fn of_events(all: &[Sampled]) -> Self {
        let mut belonging = Self::default();
        belonging.learn(all);
        belonging
    }

    /// Learns by what samples of the events say that they are theirs. What was learnt before stays.
    pub fn learn(&mut self, all: &[Sampled]) {
        if all.len() > 1 {
            all.iter().for_each(|one| self.ids.extend(one.events.ids().map(|id| (id, one.id))));
        }
    }

    /// The event of a record; `first`: that of records which don't say.
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
