//! Chooses blocks to merge: first those of a quarter of an hour, then those of an hour, then those of a day.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Millis;
use crate::block::Block;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Most bytes of blocks per merge, whose stacks are all in memory.
const MOST_BYTES: u64 = 48 << 20;
/// Fewest bytes that a stack or a frame counts as: what it usually has in a file. Names that are much alike have far less there, and as much in memory.
const LEAST_BYTES: u64 = 50;
/// Fewest bytes that a sample counts as, likewise.
const LEAST_BYTES_OF_SAMPLE: u64 = 6;
/// Fewest bytes that a frame of a stack counts as, likewise.
const LEAST_BYTES_OF_STACK_FRAME: u64 = 2;
/// A merge makes no block larger than this part of the size limit, as blocks are removed whole.
const PART_OF_LIMIT: u64 = 8;

/// Rules for merging the blocks of a level.
struct Level {
    /// Length of the window whose blocks are merged, in milliseconds.
    window: i64,
    /// Time after the end of the window, and after the last block was written, from which no further blocks are expected, in milliseconds.
    settled: i64,
    /// Number of blocks that are merged at once, even if more may follow.
    many: usize,
    /// Fewest blocks worth merging.
    least: usize,
}

/// Rules by level: blocks of 5 minutes become a quarter of an hour, an hour, a day.
const LEVELS: [Level; 4] = [
    Level { window: HOUR, settled: 10 * MINUTE, many: 3, least: 1 },
    Level { window: HOUR, settled: 10 * MINUTE, many: 12, least: 1 },
    Level { window: 24 * HOUR, settled: 2 * HOUR, many: 48, least: 1 },
    // Late profiles create further blocks for a day that has already been compacted.
    Level { window: 24 * HOUR, settled: 2 * HOUR, many: 4, least: 2 },
];

/// Blocks to merge into one of a level.
pub(crate) struct Plan {
    pub blocks: Vec<Arc<Block>>,
    pub level: u8,
}

/// Most bytes of blocks per merge, for blocks that have this size limit together.
pub(crate) fn most_bytes(limit: Option<u64>) -> u64 {
    limit.map_or(MOST_BYTES, |limit| MOST_BYTES.min(limit / PART_OF_LIMIT))
}

/// Bytes that a block counts as in a merge.
fn size(block: &Block) -> u64 {
    let counts = block.meta.counts;
    let samples = counts.samples.saturating_mul(LEAST_BYTES_OF_SAMPLE);
    let stacks = counts.stacks.saturating_add(counts.frames).saturating_mul(LEAST_BYTES);
    let stack_frames = counts.stack_frames.saturating_mul(LEAST_BYTES_OF_STACK_FRAME);
    block.meta.bytes().max(samples).max(stacks).max(stack_frames)
}

/// The next blocks of at most this size to merge, if any. With `all`, includes blocks whose window is not settled yet.
pub(crate) fn plan(blocks: &[Arc<Block>], now: Millis, all: bool, most_bytes: u64) -> Option<Plan> {
    for (number, level) in LEVELS.iter().enumerate() {
        let mut windows: BTreeMap<i64, Vec<&Arc<Block>>> = BTreeMap::new();
        let is_last = number == LEVELS.len() - 1;
        let of_level = |block: &&Arc<Block>| {
            usize::from(block.meta.level) == number && !(is_last && block.is_full.load(Ordering::Relaxed))
        };
        for block in blocks.iter().filter(of_level).filter(|block| !block.set_aside.load(Ordering::Relaxed)) {
            windows.entry(block.meta.from_ms.0.div_euclid(level.window)).or_default().push(block);
        }
        for (begin, mut window) in windows {
            let written = window.iter().map(|block| block.meta.created_ms.0).max().unwrap_or(i64::MAX);
            let end = begin.saturating_add(1).saturating_mul(level.window);
            let is_settled = all || now.0.saturating_sub(written.max(end)) >= level.settled;
            if window.len() < level.least || (window.len() < level.many && !is_settled) {
                continue;
            }
            window.sort_by_key(|block| block.meta.from_ms);
            let mut bytes = 0;
            let fits = |block: &&Arc<Block>| {
                bytes += size(block);
                bytes <= most_bytes
            };
            let mut chosen: Vec<Arc<Block>> = window.iter().copied().take_while(fits).cloned().collect();
            if chosen.is_empty() {
                // A block that exceeds the limit by itself only gets its table of hours.
                chosen.push(window[0].clone());
            }
            if chosen.len() < level.least {
                continue;
            }
            let highest = LEVELS.len() - 1;
            return Some(Plan { blocks: chosen, level: (number + 1).min(highest) as u8 });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockCounts, BlockMeta};

    /// A block of 5 minutes, written at its end.
    fn block(number: i64, level: u8, bytes: u64) -> Arc<Block> {
        let from = number * 5 * MINUTE;
        let meta = BlockMeta {
            level,
            from_ms: Millis(from),
            until_ms: Millis(from + 5 * MINUTE - 1),
            created_ms: Millis(from + 5 * MINUTE),
            files: BTreeMap::from([("x".to_owned(), crate::block::FileMeta { bytes, crc32c: 0 })]),
            ..BlockMeta::named(&number.to_string())
        };
        Arc::new(Block::new(meta, "".into()))
    }

    fn merged(blocks: &[Arc<Block>], minutes: i64) -> Option<(Vec<&str>, u8)> {
        let plan = plan(blocks, Millis(minutes * MINUTE), false, most_bytes(None))?;
        let ids = plan.blocks.iter().map(|one| blocks.iter().find(|block| block.meta.id == one.meta.id));
        Some((ids.flatten().map(|block| block.meta.id.as_str()).collect(), plan.level))
    }

    #[test]
    fn three_blocks_are_enough_and_fewer_wait_for_their_hour() {
        let blocks = [block(0, 0, 1), block(1, 0, 1), block(2, 0, 1)];
        assert_eq!(merged(&blocks[..2], 15), None);
        assert_eq!(merged(&blocks, 15), Some((vec!["0", "1", "2"], 1)));
        assert_eq!(merged(&blocks[..2], 69), None);
        assert_eq!(merged(&blocks[..2], 70), Some((vec!["0", "1"], 1)));
        // Blocks of different hours are not merged.
        let blocks = [block(10, 0, 1), block(11, 0, 1), block(12, 0, 1)];
        assert_eq!(merged(&blocks, 66), None);
    }

    #[test]
    fn an_hour_becomes_part_of_its_day_and_the_day_stays() {
        let hours = [block(0, 2, 1), block(12, 2, 1)];
        assert_eq!(merged(&hours, 25 * 60), None);
        assert_eq!(merged(&hours, 26 * 60), Some((vec!["0", "12"], 3)));
        assert_eq!(merged(&[block(0, 3, 1)], 100 * 60), None);
        assert_eq!(merged(&[block(0, 3, 1), block(12, 3, 1)], 100 * 60), Some((vec!["0", "12"], 3)));
    }

    #[test]
    fn what_is_too_much_at_once_is_merged_in_turns() {
        let blocks = [block(0, 0, MOST_BYTES / 2), block(1, 0, MOST_BYTES / 2), block(2, 0, 1)];
        assert_eq!(merged(&blocks, 15), Some((vec!["0", "1"], 1)));
        assert_eq!(merged(&[block(0, 0, MOST_BYTES + 1)], 100), Some((vec!["0"], 1)));
    }

    #[test]
    fn stacks_that_compress_well_count_as_others() {
        let wide = |number| {
            let block = block(number, 0, 1);
            let counts = BlockCounts { stacks: 200_000, frames: 200_000, ..BlockCounts::default() };
            let meta = BlockMeta { counts, ..block.meta.clone() };
            Arc::new(Block::new(meta, "".into()))
        };
        let blocks: Vec<Arc<Block>> = (0..4).map(wide).collect();
        assert_eq!(merged(&blocks, 20), Some((vec!["0", "1"], 1)));
    }

    #[test]
    fn a_day_that_has_no_room_for_more_is_left_alone() {
        let days = [block(0, 3, 1), block(1, 3, 1), block(2, 3, 1)];
        assert_eq!(merged(&days, 100 * 60), Some((vec!["0", "1", "2"], 3)));
        days[0].is_full.store(true, Ordering::Relaxed);
        assert_eq!(merged(&days, 100 * 60), Some((vec!["1", "2"], 3)));
        days[1].is_full.store(true, Ordering::Relaxed);
        assert_eq!(merged(&days, 100 * 60), None);
    }

    #[test]
    fn a_merged_block_is_a_small_part_of_the_limit() {
        let blocks = [block(0, 0, 10), block(1, 0, 10), block(2, 0, 10)];
        let merged = |limit| {
            plan(&blocks, Millis(15 * MINUTE), false, most_bytes(limit)).map(|plan| plan.blocks.len())
        };
        assert_eq!(
            [None, Some(u64::MAX), Some(240), Some(160), Some(1)].map(merged),
            [3, 3, 3, 2, 1].map(Some)
        );
    }
}
