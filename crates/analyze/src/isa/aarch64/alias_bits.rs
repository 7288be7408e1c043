//! Aliases of bit field instructions, and immediates that are masks.

use super::word::{Word, ZERO};
use super::write::{of_width, z};

/// Returns `lsl`, `ubfx`, `sxtw` and similar.
pub(super) fn bitfield(word: Word, name: &str) -> Option<String> {
    let width = if word.is_64() { 64 } else { 32 };
    let (rotation, last) = (word.bits(16, 6), word.bits(10, 6));
    if rotation >= width || last >= width || word.bit(22) != word.is_64() {
        return None;
    }
    let (to, from) = (z(word, word.rd()), z(word, word.rn()));
    // A field that is inserted at a bit, or taken from one.
    let inserts =
        |alias: &str| format!("{alias} {to}, {from}, #{}, #{}", (width - rotation) % width, last + 1);
    let extracts = |alias: &str| format!("{alias} {to}, {from}, #{rotation}, #{}", last - rotation + 1);
    if name == "bfm" {
        return Some(match last < rotation {
            true if word.rn() == ZERO => format!("bfc {to}, #{}, #{}", (width - rotation) % width, last + 1),
            true => inserts("bfi"),
            false => extracts("bfxil"),
        });
    }
    let is_signed = name == "sbfm";
    let narrow = || of_width(false, word.rn());
    let shift = |alias: &str, amount: u32| format!("{alias} {to}, {from}, #{amount}");
    Some(match (is_signed, rotation, last) {
        (true, _, _) if last == width - 1 => shift("asr", rotation),
        (false, _, _) if last == width - 1 => shift("lsr", rotation),
        (false, _, _) if last + 1 == rotation => shift("lsl", width - 1 - last),
        (true, _, _) if last < rotation => inserts("sbfiz"),
        (false, _, _) if last < rotation => inserts("ubfiz"),
        (true, 0, 7) => format!("sxtb {to}, {}", narrow()),
        (true, 0, 15) => format!("sxth {to}, {}", narrow()),
        (true, 0, 31) => format!("sxtw {to}, {}", narrow()),
        (false, 0, 7) if width == 32 => format!("uxtb {to}, {from}"),
        (false, 0, 15) if width == 32 => format!("uxth {to}, {from}"),
        (true, _, _) => extracts("sbfx"),
        (false, _, _) => extracts("ubfx"),
    })
}

/// Returns the mask that a logical instruction's immediate represents (DDI 0487, `DecodeBitMasks`).
pub(super) fn bit_mask(word: Word) -> Option<u64> {
    let (n, rotation, last) = (word.bits(22, 1), word.bits(16, 6), word.bits(10, 6));
    if n == 1 && !word.is_64() {
        return None;
    }
    // The highest bit of n and the inverted `imms` gives the size of the element that is repeated.
    let log = (n << 6 | (!last & 0x3f)).checked_ilog2().filter(|&log| log > 0)?;
    let size = 1_u32 << log;
    let (ones, rotation) = ((last & (size - 1)) + 1, rotation & (size - 1));
    if ones == size {
        return None;
    }
    let element = (1_u64 << ones) - 1;
    let whole = if size == 64 { u64::MAX } else { (1 << size) - 1 };
    let turned = match rotation {
        0 => element,
        by => (element >> by | element << (size - by)) & whole,
    };
    let repeated = (0..64).step_by(size as usize).fold(0, |all, at| all | turned << at);
    Some(if word.is_64() { repeated } else { repeated & u64::from(u32::MAX) })
}

/// Whether `movz` or `movn` has the value too; then they are the preferred `mov` (DDI 0487, `MoveWidePreferred`).
pub(super) fn is_wide(word: Word, value: u64) -> bool {
    let is_one = |value: u64| (0..64).step_by(16).any(|at| value & !(0xffff << at) == 0);
    if word.is_64() {
        is_one(value) || is_one(!value)
    } else {
        is_one(value) || is_one(!value & u64::from(u32::MAX))
    }
}
