//! Facts from BPF programs on samples that they pass to the kernel's record, kept until the record comes.
//!
//! Both refer to the same moment but have different times: a timer's record is stamped before its program runs, a record written by a program
//! after it. So a record gets the fact nearest in time, unless that is too far away.

use std::collections::VecDeque;

use plumb_capture_api::NEAR_NS;
use rustc_hash::FxHashMap;

/// Facts by thread, in order of time.
#[derive(Debug)]
pub(crate) struct SidebandQueue<T>(FxHashMap<u32, VecDeque<(u64, T)>>);

impl<T> Default for SidebandQueue<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> SidebandQueue<T> {
    /// Keeps a fact on a thread's sample at about this time.
    pub fn keep(&mut self, tid: u32, time_ns: u64, what: T) {
        self.0.entry(tid).or_default().push_back((time_ns, what));
    }

    /// The fact on the sample whose record has this time. Older facts are dropped.
    pub fn of(&mut self, tid: u32, time_ns: u64) -> Option<T> {
        let queue = self.0.get_mut(&tid)?;
        let distance = |told: &(u64, T)| told.0.abs_diff(time_ns);
        while let (Some(first), Some(second)) = (queue.front(), queue.get(1))
            && distance(second) < distance(first)
        {
            queue.pop_front();
        }
        let is_near = queue.front().is_some_and(|first| distance(first) < NEAR_NS);
        let found = if is_near { queue.pop_front() } else { None };
        while queue.front().is_some_and(|first| first.0 < time_ns) {
            queue.pop_front();
        }
        if queue.is_empty() {
            self.0.remove(&tid);
        }
        found.map(|(_, what)| what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gets_what_is_nearest() {
        let mut told = SidebandQueue::default();
        for (time, what) in [(1_000_020, 'a'), (2_000_015, 'b'), (2_999_990, 'c'), (4_000_030, 'd')] {
            told.keep(7, time, what);
        }
        assert_eq!(told.of(8, 1_000_000), None, "it is another thread's");
        assert_eq!(told.of(7, 1_000_000), Some('a'));
        // Here the record of `b` was lost, and this one has no fact.
        assert_eq!(told.of(7, 2_500_000), None);
        assert_eq!(told.of(7, 3_000_000), Some('c'), "also what was told before");
        assert_eq!(told.of(7, 3_000_100), None, "it was given out");
        assert_eq!(told.of(7, 4_000_000), Some('d'));
        assert!(told.0.is_empty());
    }
}
