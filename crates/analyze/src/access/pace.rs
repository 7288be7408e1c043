//! How fast a loop goes through memory, from the addresses of samples that follow each other.
//!
//! Short passes have addresses in no order. One that takes about a whole part of the interval between samples looks like one that is very
//! slow: it goes on by a little from sample to sample. But intervals differ by microseconds, and by how much an address goes on with those
//! tells one from the other.

use super::Access;

/// Samples farther apart are of different passes, in nanoseconds.
const FARTHEST_NS: u64 = 20_000_000;
/// Pairs that the pace rests on, and what part of all pairs goes forward: a loop that passes more often than it is sampled goes back as often.
const LEAST_PAIRS: usize = 40;
const LEAST_FORWARD: f64 = 0.35;
/// An eighth and half of what they tell are no farther apart: else they are of different passes. The slow half may have waited for a processor.
const MOST_SPREAD: f64 = 1.4;
/// Pairs are alike whose pace differs by no more than this part.
const LIKE: f64 = 0.15;
/// What an address goes on for each nanosecond more is, but for two standard errors, less than so many times what the pace has for it: where passes are
/// missed it is a multiple.
const MOST_TIMES: f64 = 2.5;

/// Nanoseconds for each byte that the address goes on; `None`: passes are too short to tell.
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

/// Whether addresses go on by more in longer intervals, as the pace has it.
fn follows(pairs: &[(u64, i64)], pace: f64) -> bool {
    let mut times: Vec<u64> = pairs.iter().map(|&(ns, _)| ns).collect();
    times.sort_unstable();
    let Some(&usual) = times.get(times.len() / 2) else { return false };
    // Of intervals of one length, that is.
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

    /// Samples each 1.001 ms of a loop that takes so long for a byte and begins anew after so many bytes.
    fn looped(ns_per_byte: f64, bytes: u64) -> Vec<Access> {
        let access = |at: u64| {
            // Clocks are not as regular as loops.
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
        // Two passes and a fifth for each sample: as if a byte took five nanoseconds.
        assert_eq!(nanoseconds_per_byte(&looped(0.5, 900_000)), None);
        assert_eq!(nanoseconds_per_byte(&[]), None);
    }
}
