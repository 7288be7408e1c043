//! Samples that stand for a stretch of time, not for a moment: threads that are off the processor.
//!
//! Invariant: a thread's stretches come in the order of their beginnings, as samples do; one in which it is blocked comes before that in which
//! it waits for a processor. Not here: bins and ranges of time.

use std::collections::HashMap;

use plumb_profile::{Event, Id, Profile, Sample, ThreadId};

/// Events of such samples: blocked from the sample's moment on, then waiting for a processor.
const NAMES: [&str; 2] = ["off-cpu", "run-queue"];

/// Where the stretches of a profile's samples begin.
pub(crate) struct Intervals {
    /// By event, which of `NAMES` it is.
    kinds: Vec<Option<usize>>,
    /// When threads last began to be blocked, and for how long.
    blocked: HashMap<ThreadId, (u64, u64)>,
}

impl Intervals {
    pub(crate) fn new(profile: &Profile) -> Self {
        let name = |event: &Event| profile.strings.get(event.name);
        let kind = |event| NAMES.iter().position(|&known| known == name(event));
        Self { kinds: profile.events.rows().iter().map(kind).collect(), blocked: HashMap::new() }
    }

    /// When the stretch of time of a sample begins, on the clock of samples; `None` if the sample is of one moment. Must be called for all
    /// samples, in their order.
    pub(crate) fn begin(&mut self, sample: &Sample) -> Option<u64> {
        if self.kinds[sample.event.index()]? == 0 {
            self.blocked.insert(sample.thread, (sample.time_ns, sample.weight));
            return Some(sample.time_ns);
        }
        // The wait for a processor follows the wait for what was blocked on.
        let begin = match self.blocked.get(&sample.thread) {
            Some(&(began, ns)) if began == sample.time_ns => began.saturating_add(ns),
            _ => sample.time_ns,
        };
        Some(begin)
    }
}
