//! Stacks of system calls: samples taken at the start of calls, matched by thread and time.

use std::collections::HashMap;

use crate::view::{NodeId, View};

/// A sample taken this long before a call's start still belongs to it: the sample and the timestamp are taken in either order.
const BEFORE_NS: u64 = 200_000;

/// Samples of threads at the start of their calls.
pub struct CallStacks {
    /// Times and stacks by thread, the earliest first.
    samples: HashMap<u32, Vec<(u64, NodeId)>>,
    /// End of each thread's previous call: an earlier sample does not belong to the next.
    ended: HashMap<u32, u64>,
}

impl CallStacks {
    /// Collects the samples of a view.
    pub fn new(view: &View<'_>) -> Self {
        let mut samples: HashMap<u32, Vec<(u64, NodeId)>> = HashMap::new();
        for one in view.samples() {
            let tid = view.profile().threads[one.sample.thread].tid;
            samples.entry(tid).or_default().push((one.sample.time_ns, one.node));
        }
        samples.values_mut().for_each(|samples| samples.sort_unstable_by_key(|(time, _)| *time));
        Self { samples, ended: HashMap::new() }
    }

    /// Returns the stack of a thread's next call: its last sample since the previous call ended.
    pub fn next_call(&mut self, tid: u32, begin_ns: u64, end_ns: u64) -> Option<NodeId> {
        let previous = self.ended.insert(tid, end_ns).unwrap_or(0);
        let since = previous.max(begin_ns.saturating_sub(BEFORE_NS));
        let samples = self.samples.get(&tid)?;
        let after = samples.partition_point(|(time, _)| *time <= end_ns);
        samples.get(..after)?.last().filter(|(time, _)| *time >= since).map(|(_, node)| *node)
    }
}
