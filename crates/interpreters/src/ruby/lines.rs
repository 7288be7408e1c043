//! Lines of Ruby's code (`struct iseq_insn_info` and `struct succ_index_table` in Ruby's iseq.c).

use super::layout::{BODY_LENGTH, RubyLayout};
use crate::Memory;
use crate::function::SourceLines;
use crate::memory::word_in;

/// Most instruction words of a function whose lines are read.
const MAX_LENGTH: usize = 1 << 16;
/// Instruction words whose ranks are in the first part of the index: nine in each of its words, with seven bits each.
const IMMEDIATE: usize = 54;
const IMMEDIATE_BYTES: usize = 8 * IMMEDIATE / 9;
/// Instruction words of a further block: a rank, the ranks of the words of bits after the first, nine bits each, and the bits.
const BLOCK: usize = 512;
const BLOCK_BYTES: usize = 8 + 8 + BLOCK / 8;

/// Reads the lines of a body by its first bytes. `None` if they are not there.
pub(super) fn read(memory: &dyn Memory, layout: &RubyLayout, body: &[u8]) -> Option<SourceLines> {
    let word = |member: u32| word_in(body, layout.lines + member);
    let length = (word_in(body, BODY_LENGTH) as u32) as usize;
    let (entries, count, index) = (word(0), (word(16) as u32) as usize, word(24));
    if length > MAX_LENGTH || count > length || count == 0 {
        return None;
    }
    let mut lines = vec![0; count * layout.line_bytes as usize];
    if !memory.read(entries, &mut lines) {
        return None;
    }
    let line = |entry: usize| word_in(&lines, (entry * layout.line_bytes as usize) as u32) as u32;
    if count == 1 {
        return Some(SourceLines { instructions: vec![(0, line(0))], ends: None });
    }
    let mut ranks = vec![0; IMMEDIATE_BYTES + length.saturating_sub(IMMEDIATE).div_ceil(BLOCK) * BLOCK_BYTES];
    if !memory.read(index, &mut ranks) {
        return None;
    }
    let mut instructions: Vec<(u32, u32)> = Vec::new();
    let mut last = 0;
    for at in 0..length {
        let rank = rank(&ranks, at);
        if rank != last && (1..=count).contains(&rank) {
            instructions.push((at as u32, line(rank - 1)));
            last = rank;
        }
    }
    Some(SourceLines { instructions, ends: None })
}

/// Number of entries that begin at an instruction word or before it, as `succ_index_lookup` finds it.
fn rank(index: &[u8], at: usize) -> usize {
    let Some(at) = at.checked_sub(IMMEDIATE) else {
        return (word_in(index, 8 * (at / 9) as u32) >> (7 * (at % 9)) & 0x7f) as usize;
    };
    let block = index.get(IMMEDIATE_BYTES + at / BLOCK * BLOCK_BYTES..).unwrap_or_default();
    let (bit, words) = (at % 64, at % BLOCK / 64);
    let before = words.checked_sub(1).map_or(0, |words| word_in(block, 8) >> (9 * words) & 0x1ff);
    let bits = word_in(block, 16 + 8 * words as u32) << (63 - bit);
    (u64::from(word_in(block, 0) as u32) + before) as usize + bits.count_ones() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index as `succ_index_table_create` makes it.
    fn index(begins: &[usize], length: usize) -> Vec<u8> {
        let rank = |at: usize| begins.iter().filter(|&&begin| begin <= at).count() as u64;
        let mut words = vec![0_u64; IMMEDIATE / 9];
        for at in 0..IMMEDIATE.min(length) {
            words[at / 9] |= rank(at) << (7 * (at % 9));
        }
        for start in (IMMEDIATE..length).step_by(BLOCK) {
            let begun = rank(start - 1);
            let ranks = (1..8).map(|part| (rank(start + 64 * part - 1) - begun) << (9 * (part - 1))).sum();
            let bits = |part: usize| {
                let begins = begins.iter().filter_map(|begin| begin.checked_sub(start + 64 * part));
                begins.filter(|&bit| bit < 64).fold(0, |bits, bit| bits | 1 << bit)
            };
            words.extend([begun, ranks].into_iter().chain((0..8).map(bits)));
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn an_instruction_has_the_last_entry_that_begins_before_it() {
        let begins: Vec<usize> = (0..1300).filter(|at| at % 7 == 0 || at % 64 == 1 || at % 11 == 3).collect();
        let index = index(&begins, 1300);
        for at in 0..1300 {
            let expected = begins.partition_point(|&begin| begin <= at);
            assert_eq!(rank(&index, at), expected, "instruction {at}");
        }
        assert_eq!(rank(&[], 5000), 0, "truncated");
    }
}
