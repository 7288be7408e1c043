//! A part of a selection that is too large to be read whole: whole profiles, chosen by their times.
//!
//! Invariant: the series of one profile keep or lose a time together, so that what counts samples and what weighs them still belong together; and the
//! same times are chosen in each query. A hash of the time chooses, so that a habit of the clock does not.

use crate::batch::Millis;

/// Most levels: of times that are taken at one, half are at the next.
const LEVELS: usize = 32;

/// Which times are taken: one in two to this power.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thinning(u8);

impl Thinning {
    /// Whether a time is taken.
    pub fn takes(self, time: Millis) -> bool {
        self.0 == 0 || level(time) >= self.0
    }

    /// Whether all times are.
    pub fn is_all(self) -> bool {
        self.0 == 0
    }
}

/// The highest level at which a time is taken.
fn level(time: Millis) -> u8 {
    // The finalizer of splitmix64 (Steele, Lea, Flood 2014): all bits of the time decide about each bit.
    let mut hash = time.0 as u64;
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)).trailing_zeros().min(LEVELS as u32 - 1) as u8
}

/// Rows that are read of a selection, a row being what a stack of a profile amounts to, and how many it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsTaken {
    /// Rows of the profiles that are read.
    pub taken: u64,
    /// All rows.
    pub of: u64,
}

/// Rows by the highest level at which they are taken.
#[derive(Debug, Default)]
pub(super) struct LevelCounts([u64; LEVELS]);

impl LevelCounts {
    pub fn add(&mut self, time: Millis, rows: usize) {
        self.0[usize::from(level(time))] += rows as u64;
    }

    /// The thinning to at most so many rows, and what it leaves. Where that would be none, the last one that leaves some.
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
