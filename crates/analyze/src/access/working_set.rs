//! The working set's size, estimated by capture and recapture (Chapman 1951): how often two halves of the addresses meet.

use std::collections::{HashMap, HashSet};

use super::{Access, LINE, PAGE};

/// Least number of blocks in both halves for an estimate of the size; with fewer there is only a lower bound.
const LEAST_COMMON: usize = 20;
/// Number of successive addresses that go to one half: what is accessed at one time lies close together.
const RUN: usize = 4;
/// Least number of repeated visits to pages from which the number of used lines per page is estimated.
const LEAST_PAIRS: u64 = 8;
/// A page is sparse if at most this many of its lines are used, on average.
const FEW_LINES: f64 = 4.0;

/// An estimate of the memory accessed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkingSet {
    /// Size in bytes: counted in cache lines if these repeat often enough, otherwise in pages.
    pub bytes: u64,
    /// `bytes` is a lower bound, because too few addresses repeat.
    pub is_least: bool,
    /// Bytes from the lowest to the highest address, without the outermost percent.
    pub span: u64,
    /// Number of addresses that the estimate rests on.
    pub samples: usize,
    /// Bytes of the pages touched, if only few lines of each are used.
    pub sparse_pages: Option<u64>,
}

/// Returns the estimate; `None` for fewer than 20 addresses.
pub(crate) fn working_set(accesses: &[Access]) -> Option<WorkingSet> {
    if accesses.len() < 20 {
        return None;
    }
    let moved = moved(accesses);
    let by_lines = estimate(&moved, LINE);
    let by_pages = estimate(&moved, PAGE);
    let span = span(accesses);
    let (bytes, is_least) = match (by_lines, by_pages) {
        (Estimate::Size(lines), _) => (lines * LINE, false),
        (Estimate::Least(lines), Estimate::Size(pages)) => ((pages * PAGE).max(lines * LINE), false),
        (Estimate::Least(lines), Estimate::Least(pages)) => ((pages * PAGE).max(lines * LINE), true),
    };
    // A size counted in pages may be a few lines of each.
    let bytes = bytes.min(span.max(LINE));
    let (mut set, pages) =
        (WorkingSet { bytes, is_least, span, samples: accesses.len(), sparse_pages: None }, bytes);
    let is_spread = pages >= 64 * PAGE;
    if let Some(lines) = lines_of_a_page(&moved).filter(|&lines| is_spread && lines <= FEW_LINES) {
        set.sparse_pages = Some(pages);
        set.bytes = (pages as f64 / PAGE as f64 * lines) as u64 * LINE;
    }
    Some(set)
}

/// Returns the average number of lines used per page, from how often two addresses on one page are on one line. `None`: too few pages are
/// visited twice.
fn lines_of_a_page(accesses: &[Access]) -> Option<f64> {
    let mut lines: HashMap<u64, Vec<u64>> = HashMap::new();
    accesses
        .iter()
        .for_each(|access| lines.entry(access.address / PAGE).or_default().push(access.address / LINE));
    let (mut pairs, mut same) = (0_u64, 0_u64);
    for lines in lines.values().filter(|lines| lines.len() >= 2) {
        pairs += lines.len() as u64 - 1;
        same += lines.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64;
    }
    (pairs >= LEAST_PAIRS && same > 0).then(|| pairs as f64 / same as f64)
}

/// Drops addresses at which a thread stood still since its previous sample: a thread without a CPU is sampled at the same address again.
fn moved(accesses: &[Access]) -> Vec<Access> {
    let mut moved: Vec<Access> = Vec::with_capacity(accesses.len());
    for &access in accesses {
        let before = moved.iter().rev().take(RUN).find(|before| before.thread == access.thread);
        if before.is_none_or(|before| before.address != access.address) {
            moved.push(access);
        }
    }
    // Most samples are at one address: keep them all.
    if moved.len() * 4 < accesses.len() { accesses.to_vec() } else { moved }
}

/// An estimated number of blocks: the size, or a lower bound.
enum Estimate {
    Size(u64),
    Least(u64),
}

fn estimate(accesses: &[Access], block: u64) -> Estimate {
    let mut halves = [HashSet::new(), HashSet::new()];
    for (index, access) in accesses.iter().enumerate() {
        halves[index / RUN % 2].insert(access.address / block);
    }
    let common = halves[0].intersection(&halves[1]).count();
    let (one, other) = (halves[0].len(), halves[1].len());
    match common >= LEAST_COMMON || common * 2 >= one.min(other) {
        true => Estimate::Size(((one + 1) * (other + 1) / (common + 1)).saturating_sub(1).max(1) as u64),
        // A lower bound: n²/common, with the least number of common blocks that would have been enough.
        false => Estimate::Least((one * other / LEAST_COMMON) as u64),
    }
}

/// Returns the bytes from the first to the last address without one percent at each end: single outliers would determine it otherwise.
fn span(accesses: &[Access]) -> u64 {
    let mut all: Vec<u64> = accesses.iter().map(|access| access.address).collect();
    all.sort_unstable();
    let edge = all.len() / 100;
    let inner = &all[edge..all.len() - edge];
    match inner {
        [first, .., last] => last - first + LINE,
        _ => LINE,
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Id, ThreadId};

    use super::*;

    /// Addresses spread evenly over `bytes`, in random order (a linear congruential generator, Knuth's MMIX).
    fn spread(bytes: u64, count: usize) -> Vec<Access> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 20) % bytes
        };
        let access =
            |at| Access { time_ns: 0, thread: ThreadId::from_index(0), address: 0x7f00_0000_0000 + at };
        (0..count).map(|_| access(next())).collect()
    }

    #[test]
    fn sizes_are_found_within_a_third() {
        for (bytes, count) in [(16 << 10, 600), (64 << 10, 1000), (1 << 20, 2400), (64 << 20, 2400)] {
            let found = working_set(&spread(bytes, count)).unwrap();
            let ratio = found.bytes as f64 / bytes as f64;
            assert!((0.66..1.5).contains(&ratio), "{bytes}: {found:?}");
            assert!(!found.is_least);
        }
        let large = working_set(&spread(4 << 30, 1000)).unwrap();
        assert!(large.is_least && large.bytes > 32 << 20, "{large:?}");
        assert_eq!(working_set(&spread(64, 500)).unwrap().bytes, 64, "one line");
        assert!(working_set(&spread(1 << 20, 10)).is_none());
    }
}
