//! Reduces a selection that is too large: keeps whole profiles, chosen by their timestamps.
//!
//! Invariant: all series of a profile keep or lose a timestamp together, so that counts and their weights still match; and every query chooses the
//! same timestamps. The choice is by a hash of the timestamp, so it is not correlated with periodic sampling.

use crate::batch::Millis;

/// Number of levels. Each level keeps half the timestamps of the previous one.
const LEVELS: usize = 32;

/// Level of thinning: one in 2^level timestamps is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thinning(u8);

impl Thinning {
    /// Whether a timestamp is kept.
    pub fn takes(self, time: Millis) -> bool {
        self.0 == 0 || level(time) >= self.0
    }

    /// Whether all timestamps are kept.
    pub fn is_all(self) -> bool {
        self.0 == 0
    }
}

/// Highest level at which a timestamp is kept.
fn level(time: Millis) -> u8 {
    // The finalizer of splitmix64 (Steele, Lea, Flood 2014): each bit of the hash depends on all bits of the timestamp.
    let mut hash = time.0 as u64;
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)).trailing_zeros().min(LEVELS as u32 - 1) as u8
}

/// Rows that are kept of a selection, and all its rows. A row is the value of a stack in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsTaken {
    /// Rows of the kept profiles.
    pub taken: u64,
    /// All rows.
    pub of: u64,
}

/// Number of rows by the highest level at which they are kept.
#[derive(Debug, Default)]
pub(super) struct LevelCounts([u64; LEVELS]);

impl LevelCounts {
    pub fn add(&mut self, time: Millis, rows: usize) {
        self.0[usize::from(level(time))] += rows as u64;
    }

    /// Number of all rows.
    pub fn rows(&self) -> u64 {
        self.from(0)
    }

    /// The thinning that keeps at most `most` rows, and the number that it keeps. If it would keep none, the last one that keeps some.
    pub fn thinning(&self, most: usize) -> (Thinning, RowsTaken) {
        let level = self.first_within(most as u64);
        (Thinning(level as u8), RowsTaken { taken: self.from(level), of: self.from(0) })
    }

    fn from(&self, level: usize) -> u64 {
        self.0[level..].iter().sum()
    }

    fn first_within(&self, most: u64) -> usize {
        let last = self.0.iter().rposition(|&rows| rows > 0).unwrap_or(0);
        (0..last).find(|&level| self.from(level) <= most).unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_halve_the_times_whatever_their_distance() {
        for step in [1, 1000, 15_000, 1 << 20] {
            let times = (0..10_000).map(|place| Millis(1_795_246_147_000 + place * step));
            let mut counts = LevelCounts::default();
            times.for_each(|time| counts.add(time, 1));
            for (level, expected) in [(0, 10_000.0), (1, 5000.0), (3, 1250.0), (5, 312.5)] {
                let found = counts.from(level) as f64;
                assert!((found - expected).abs() < 5.0 * f64::sqrt(expected), "{step} {level}: {found}");
            }
        }
    }

    #[test]
    fn something_is_always_taken() {
        let mut counts = LevelCounts::default();
        assert_eq!(counts.thinning(0).1, RowsTaken { taken: 0, of: 0 });
        counts.add(Millis(1), 7);
        let (thinning, rows) = counts.thinning(3);
        assert!(thinning.takes(Millis(1)));
        assert_eq!(rows, RowsTaken { taken: 7, of: 7 });
    }
}
