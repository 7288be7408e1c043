//! Finds the starts of functions in code without rules: targets of calls, and addresses that the code computes.
//!
//! Starts after the end of other code are found elsewhere (`flow`).

use std::ops::Range;

use plumb_process::SectionReader;
use plumb_unwind::Isa;

use super::aarch64;

/// Number of bytes of code in memory at a time; below, the overlap with the next piece.
const PIECE: u64 = 1 << 20;
const LONGEST: u64 = 7;

/// Returns the targets of calls and address computations in the gaps, in order. Every byte sequence that looks like
/// one counts: a false one rarely leads into a gap.
pub(super) fn called(isa: Isa, code: &SectionReader, gaps: &[Range<u64>]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut bytes = vec![0; (PIECE + LONGEST).min(code.size()) as usize];
    for offset in (0..code.size()).step_by(PIECE as usize) {
        let read = code.read_at(offset, &mut bytes);
        let piece = bytes.get(..read).unwrap_or_default();
        search(isa, piece, code.address.saturating_add(offset), gaps, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Adds the targets in the gaps of the code that begins at `start`.
pub(super) fn search(isa: Isa, code: &[u8], start: u64, gaps: &[Range<u64>], found: &mut Vec<u64>) {
    let add = |target: u64| {
        let after = gaps.partition_point(|gap| gap.start <= target);
        if after.checked_sub(1).and_then(|index| gaps.get(index)).is_some_and(|gap| gap.contains(&target)) {
            found.push(target);
        }
    };
    match isa {
        Isa::X86_64 => search_x86_64(code, start, add),
        Isa::Aarch64 | Isa::Arm => search_aarch64(code, start, add),
    }
}

fn search_aarch64(code: &[u8], start: u64, mut add: impl FnMut(u64)) {
    let words = || code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let nexts = words().skip(1).chain([0]);
    for ((word, next), at) in words().zip(nexts).zip((start..).step_by(4)) {
        aarch64::called(word, at)
            .or_else(|| aarch64::computed([word, next], at))
            .into_iter()
            .for_each(&mut add);
    }
}

fn search_x86_64(code: &[u8], start: u64, mut to: impl FnMut(u64)) {
    let mut add =
        |end: u64, relative: [u8; 4]| to(end.wrapping_add_signed(i32::from_le_bytes(relative).into()));
    for index in 0..code.len() {
        let at = start.wrapping_add(index as u64);
        match code[index..] {
            // CALL rel32
            [0xe8, a, b, c, d, ..] => add(at.wrapping_add(5), [a, b, c, d]),
            // LEA r64, [rip + disp32]
            [0x48 | 0x4c, 0x8d, modrm, a, b, c, d, ..] if modrm & 0xc7 == 0x05 => {
                add(at.wrapping_add(7), [a, b, c, d]);
            }
            _ => {}
        }
    }
}
