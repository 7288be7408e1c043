//! Where functions begin in code that no rules tell it of: what calls lead to, and what addresses are taken of.
//!
//! Not here: what begins after code that ends, see `flow`.

use std::ops::Range;

use super::text::Text;

/// Where calls and addresses that are computed lead in the gaps, in order. All bytes that would be one are taken for one: what is none hardly ever
/// leads there.
pub(super) fn called(text: &Text, gaps: &[Range<u64>]) -> Vec<u64> {
    let mut found = Vec::new();
    let mut add = |end: u64, relative: [u8; 4]| {
        let target = end.wrapping_add_signed(i32::from_le_bytes(relative).into());
        let after = gaps.partition_point(|gap| gap.start <= target);
        if after.checked_sub(1).and_then(|index| gaps.get(index)).is_some_and(|gap| gap.contains(&target)) {
            found.push(target);
        }
    };
    for index in 0..text.bytes.len() {
        let at = text.start + index as u64;
        match text.bytes[index..] {
            // CALL rel32
            [0xe8, a, b, c, d, ..] => add(at + 5, [a, b, c, d]),
            // LEA r64, [rip + disp32]
            [0x48 | 0x4c, 0x8d, modrm, a, b, c, d, ..] if modrm & 0xc7 == 0x05 => add(at + 7, [a, b, c, d]),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
