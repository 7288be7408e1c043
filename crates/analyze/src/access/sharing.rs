//! Cache lines that several threads access: the same word, or different ones.

use std::collections::{HashMap, HashSet};

use plumb_profile::ThreadId;

use super::{Access, LINE};

/// Least share of a site's samples for a thread to count.
pub(crate) const LEAST_OF_SITE: f64 = 0.1;
/// Least number of switches from one thread to the other, as a share of those expected in random order.
const LEAST_MIXED: f64 = 0.5;

/// The sharing of a cache line between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineSharing {
    /// The threads access the same words; otherwise different words of one line.
    pub same_word: bool,
    /// Number of threads.
    pub threads: usize,
}

/// Returns how threads share a site's lines, if they access them at the same time. `None`: they do not, or one thread has nearly all samples.
pub(crate) fn sharing(accesses: &[Access]) -> Option<LineSharing> {
    let mut by_thread: HashMap<ThreadId, Vec<&Access>> = HashMap::new();
    accesses.iter().for_each(|access| by_thread.entry(access.thread).or_default().push(access));
    let least = (accesses.len() as f64 * LEAST_OF_SITE).max(5.0);
    by_thread.retain(|_, those| those.len() as f64 >= least);
    let mut shared: HashSet<ThreadId> = HashSet::new();
    let mut words_meet = false;
    let threads: Vec<(&ThreadId, &Vec<&Access>)> = by_thread.iter().collect();
    for (index, (one, those)) in threads.iter().enumerate() {
        for (other, others) in &threads[index + 1..] {
            if !overlap(those, others) {
                continue;
            }
            let lines = |those: &[&Access]| {
                those.iter().map(|access| access.address / LINE).collect::<HashSet<u64>>()
            };
            let (ours, theirs) = (lines(those), lines(others));
            let common: HashSet<u64> = ours.intersection(&theirs).copied().collect();
            let is_common = |access: &&&Access| common.contains(&(access.address / LINE));
            let (mine, yours) =
                (those.iter().filter(is_common).count(), others.iter().filter(is_common).count());
            // Threads that walk over the same memory meet on some lines by chance, so most lines have to be shared.
            if mine * 2 < those.len() || yours * 2 < others.len() {
                continue;
            }
            let words: HashSet<u64> =
                those.iter().filter(is_common).map(|access| access.address / 8).collect();
            let meets =
                others.iter().filter(is_common).filter(|access| words.contains(&(access.address / 8)));
            words_meet |= meets.count() * 2 >= yours;
            shared.extend([**one, **other]);
        }
    }
    (shared.len() >= 2).then_some(LineSharing { same_word: words_meet, threads: shared.len() })
}

/// Whether two threads accessed the lines at the same time: their samples interleave as those of two threads running side by side do. An
/// object that a runtime moves between threads has many samples in one thread, then many in the other.
fn overlap(one: &[&Access], other: &[&Access]) -> bool {
    let mut merged: Vec<(u64, bool)> = one.iter().map(|access| (access.time_ns, true)).collect();
    merged.extend(other.iter().map(|access| (access.time_ns, false)));
    merged.sort_unstable();
    let changes = merged.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    // Random order has 2pq switches per pair.
    let (ours, theirs) = (one.len() as f64, other.len() as f64);
    let is_mixed = changes as f64 >= LEAST_MIXED * 2.0 * ours * theirs / (ours + theirs);
    is_mixed && extents_meet(one, other)
}

/// Whether one thread's time span overlaps the other's.
fn extents_meet(one: &[&Access], other: &[&Access]) -> bool {
    let extent = |those: &[&Access]| {
        let times = those.iter().map(|access| access.time_ns);
        (times.clone().min().unwrap_or(0), times.max().unwrap_or(0))
    };
    let ((one_begin, one_end), (other_begin, other_end)) = (extent(one), extent(other));
    one_begin < other_end && other_begin < one_end
}

#[cfg(test)]
mod tests {
    use plumb_profile::Id;

    use super::*;

    fn accesses(of: &[(usize, u64)]) -> Vec<Access> {
        let access = |(index, &(thread, address)): (usize, &(usize, u64))| Access {
            time_ns: index as u64,
            thread: ThreadId::from_index(thread),
            address,
        };
        (0..40).flat_map(|_| of).enumerate().map(access).collect()
    }

    #[test]
    fn words_and_lines_are_told_apart() {
        let same = sharing(&accesses(&[(0, 0x1000), (1, 0x1000)]));
        assert_eq!(same, Some(LineSharing { same_word: true, threads: 2 }));
        let line = sharing(&accesses(&[(0, 0x1000), (1, 0x1008), (2, 0x1010)]));
        assert_eq!(line, Some(LineSharing { same_word: false, threads: 3 }));
        assert_eq!(sharing(&accesses(&[(0, 0x1000), (1, 0x1040)])), None, "padded");
        assert_eq!(sharing(&accesses(&[(0, 0x1000)])), None, "one thread");
    }

    #[test]
    fn one_after_the_other_is_no_sharing() {
        let mut all = accesses(&[(0, 0x1000)]);
        let later =
            accesses(&[(1, 0x1000)]).into_iter().map(|one| Access { time_ns: one.time_ns + 1000, ..one });
        all.extend(later);
        assert_eq!(sharing(&all), None);
    }

    #[test]
    fn what_moves_from_thread_to_thread_is_no_sharing() {
        let turns = accesses(&[(0, 0x1000)]).into_iter().cycle().take(400).enumerate();
        let all: Vec<Access> = turns
            .map(|(at, one)| Access { time_ns: at as u64, thread: ThreadId::from_index(at / 25 % 2), ..one })
            .collect();
        assert_eq!(sharing(&all), None);
    }
}
