//! What a program in the kernel tells of samples that it hands over, until their records come.
//!
//! Both are of one moment, but neither has the other's time: a timer's record has that before its program, one that a program has
//! written that after it. So a record gets what is nearest to it in time, and nothing that is not near.

use std::collections::VecDeque;

use plumb_capture_api::NEAR_NS;
use rustc_hash::FxHashMap;

/// What was told, by thread, in the order of time.
#[derive(Debug)]
pub(crate) struct SidebandQueue<T>(FxHashMap<u32, VecDeque<(u64, T)>>);

impl<T> Default for SidebandQueue<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> SidebandQueue<T> {
    /// Keeps what was told of a thread's sample at about this time.
    pub fn keep(&mut self, tid: u32, time_ns: u64, what: T) {
        self.0.entry(tid).or_default().push_back((time_ns, what));
    }

    /// What was told of the sample whose record has this time. What is older is forgotten.
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
        // The record of `b` was lost, and of this one nothing was told.
        assert_eq!(told.of(7, 2_500_000), None);
        assert_eq!(told.of(7, 3_000_000), Some('c'), "also what was told before");
        assert_eq!(told.of(7, 3_000_100), None, "it was given out");
        assert_eq!(told.of(7, 4_000_000), Some('d'));
        assert!(told.0.is_empty());
    }
}
