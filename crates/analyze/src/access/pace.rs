//! The speed at which a loop walks through memory, from the addresses of successive samples.
//!
//! If passes over the memory are short, the addresses of successive samples are unordered. A pass that takes about a whole fraction of the
//! sampling interval looks like a very slow one: its address advances a little from sample to sample. But intervals differ by
//! microseconds, and how much further an address advances in a longer interval tells one from the other.

use super::Access;

/// Samples farther apart than this, in nanoseconds, belong to different passes.
const FARTHEST_NS: u64 = 20_000_000;
/// Pairs of samples that the estimate needs, and the share of all pairs that must advance: a loop that passes over its memory more often
/// than it is sampled goes back as often.
const LEAST_PAIRS: usize = 40;
const LEAST_FORWARD: f64 = 0.35;
/// Largest ratio of the median pace to the 12.5% quantile: beyond it the pairs are of different passes. The slow half is ignored, because it may
/// have waited for a CPU.
const MOST_SPREAD: f64 = 1.4;
/// Pairs count as alike if their pace is within this share of the estimate.
const LIKE: f64 = 0.15;
/// Largest slope of bytes over time, plus two standard errors, as a multiple of the slope that the pace implies: if whole passes are missed,
/// the slope is a multiple of it.
const MOST_TIMES: f64 = 2.5;

/// Returns the nanoseconds per byte advanced; `None` if passes are too short to tell.
pub(crate) fn nanoseconds_per_byte(accesses: &[Access]) -> Option<f64> {
    let pairs = accesses.windows(2).filter(|pair| pair[0].thread == pair[1].thread);
    let near: Vec<(u64, i64)> = pairs
        .map(|pair| {
            let bytes = pair[1].address.wrapping_sub(pair[0].address).cast_signed();
            (pair[1].time_ns.saturating_sub(pair[0].time_ns), bytes)
        })
        .filter(|&(ns, _)| ns > 0 && ns <= FARTHEST_NS)
        .collect();
    let pace_of = |&(ns, bytes): &(u64, i64)| ns as f64 / bytes as f64;
    let forward: Vec<(u64, i64)> = near.iter().copied().filter(|&(_, bytes)| bytes > 0).collect();
    let mut paces: Vec<f64> = forward.iter().map(pace_of).collect();
    if paces.len() < LEAST_PAIRS || (paces.len() as f64) < LEAST_FORWARD * near.len() as f64 {
        return None;
    }
    paces.sort_by(f64::total_cmp);
    let at = |part: usize| paces[paces.len() * part / 8];
    let pace = at(2);
    let is_like = |pair: &(u64, i64)| (pace_of(pair) / pace - 1.0).abs() <= LIKE;
    let alike: Vec<(u64, i64)> = forward.into_iter().filter(is_like).collect();
    (at(4) <= MOST_SPREAD * at(1) && follows(&alike, pace)).then_some(pace)
}

/// Whether addresses advance further in longer intervals, at the given pace.
fn follows(pairs: &[(u64, i64)], pace: f64) -> bool {
    let mut times: Vec<u64> = pairs.iter().map(|&(ns, _)| ns).collect();
    times.sort_unstable();
    let Some(&usual) = times.get(times.len() / 2) else { return false };
    // Compares only intervals of about one length.
    let near: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|(ns, _)| ns.abs_diff(usual) * 20 <= usual)
        .map(|&(ns, bytes)| (ns as f64, bytes as f64))
        .collect();
    let count = near.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| near.iter().map(of).sum::<f64>() / count;
    let (time, bytes) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let spread: f64 = near.iter().map(|pair| (pair.0 - time).powi(2)).sum();
    let slope = near.iter().map(|pair| (pair.0 - time) * (pair.1 - bytes)).sum::<f64>() / spread;
    let rest: f64 = near.iter().map(|pair| (pair.1 - bytes - slope * (pair.0 - time)).powi(2)).sum();
    let error = (rest / (count - 2.0) / spread).sqrt();
    count >= LEAST_PAIRS as f64 && (slope + 2.0 * error) * pace <= MOST_TIMES
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Id, ThreadId};

    use super::*;

    /// Samples, every 1.001 ms, of a loop that takes `ns_per_byte` and starts over after `bytes`.
    fn looped(ns_per_byte: f64, bytes: u64) -> Vec<Access> {
        let access = |at: u64| {
            // The intervals jitter, as a real clock's do.
            let time_ns = at * 1_001_000 + at * at * 7919 % 8_000;
            let address = 0x7f00_0000_0000 + (time_ns as f64 / ns_per_byte) as u64 % bytes;
            Access { time_ns, thread: ThreadId::from_index(0), address }
        };
        (0..1000).map(access).collect()
    }

    #[test]
    fn long_passes_tell_the_pace_and_short_ones_nothing() {
        let pace = nanoseconds_per_byte(&looped(2.5, 1 << 20)).expect("2.6 ms a pass");
        assert!((pace / 2.5 - 1.0).abs() < 0.01, "{pace}");
        for bytes in [1 << 10, 10_000, 77_777, 100_007, 1 << 18] {
            assert_eq!(nanoseconds_per_byte(&looped(2.5, bytes)), None, "{bytes}");
        }
        // Two and a fifth passes for each sample: looks as if a byte took five nanoseconds.
        assert_eq!(nanoseconds_per_byte(&looped(0.5, 900_000)), None);
        assert_eq!(nanoseconds_per_byte(&[]), None);
    }
}
