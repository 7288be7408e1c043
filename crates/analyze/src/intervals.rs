//! Samples that represent an interval instead of a moment: off-CPU threads.
//!
//! Invariant: a thread's intervals come in the order of their starts, as samples do; the one in which it is blocked comes before that in which
//! it waits in the run queue. Elsewhere: bins and time ranges.

use std::collections::HashMap;

use plumb_profile::{Event, Id, Profile, Sample, ThreadId};

/// Computes where the intervals of a profile's samples start.
pub(crate) struct Intervals {
    /// For each event, its index in [`Event::WAITS`], if any.
    kinds: Vec<Option<usize>>,
    /// Start and duration in nanoseconds of each thread's last blocked interval.
    blocked: HashMap<ThreadId, (u64, u64)>,
}

impl Intervals {
    pub(crate) fn new(profile: &Profile) -> Self {
        let name = |event: &Event| profile.strings.get(event.name);
        let kind = |event| Event::WAITS.iter().position(|&known| known == name(event));
        Self { kinds: profile.events.rows().iter().map(kind).collect(), blocked: HashMap::new() }
    }

    /// Returns the start of a sample's interval, on the samples' clock; `None` if the sample is a moment. Must be called for all
    /// samples, in their order.
    pub(crate) fn begin(&mut self, sample: &Sample) -> Option<u64> {
        if self.kinds[sample.event.index()]? == 0 {
            self.blocked.insert(sample.thread, (sample.time_ns, sample.weight));
            return Some(sample.time_ns);
        }
        // The run-queue wait follows the blocked interval.
        let begin = match self.blocked.get(&sample.thread) {
            Some(&(began, ns)) if began == sample.time_ns => began.saturating_add(ns),
            _ => sample.time_ns,
        };
        Some(begin)
    }
}
