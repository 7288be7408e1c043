//! Mutates inputs: bits, bytes, length words, truncation, moved and copied pieces, numbers in texts.

/// A small reproducible source of numbers (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Most bytes that an input may grow beyond its seed.
const MOST_MORE: usize = 1 << 16;

/// Values that code is likely to mishandle as length, count or offset.
const WORDS: [u64; 10] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
    0x8000_0000_0000_0000,
];

/// Values that text parsers are likely to mishandle.
const NUMBERS: [&str; 10] = [
    "-1",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-1e308",
    "NaN",
    "4294967295",
    "",
    "9223372036854775807",
];

/// Returns the seed with some mutations. `other` is an input to copy pieces from.
pub fn changed(seed: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    // Heavily mutated inputs are rejected early, so half of the inputs get a small change.
    if dice.below(2) == 0 {
        change_little(&mut bytes, dice);
        return bytes;
    }
    for _ in 0..1 + dice.below(4) {
        if bytes.is_empty() {
            break;
        }
        change(&mut bytes, other, dice);
        bytes.truncate(seed.len() + MOST_MORE);
    }
    bytes
}

/// Changes one number, word, byte or bit.
fn change_little(bytes: &mut Vec<u8>, dice: &mut Dice) {
    let at = dice.below(bytes.len());
    let is_text = bytes.iter().take(512).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    match dice.below(if is_text { 8 } else { 4 }) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = bytes[at].wrapping_add([1, 0xff, 0x10, 0x80][dice.below(4)]),
        2 if !is_text => word(bytes, at, dice),
        3 if !is_text => bytes[at] = dice.next() as u8,
        _ => number(bytes, at, dice),
    }
}

fn change(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let length = bytes.len();
    let at = dice.below(length);
    match dice.below(10) {
        0 => (0..1 + dice.below(8)).for_each(|_| bytes[dice.below(length)] ^= 1 << dice.below(8)),
        1 => (0..1 + dice.below(30)).for_each(|_| bytes[dice.below(length)] = dice.next() as u8),
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b' '][dice.below(8)],
        3 | 4 => word(bytes, at, dice),
        5 => bytes.truncate(at),
        6 => drop(bytes.drain(at..(at + 1 + dice.below(64)).min(length))),
        7 => {
            let piece = piece(bytes, dice);
            bytes.splice(at..at, piece);
        }
        8 => {
            let piece = piece(other, dice);
            let end = (at + piece.len()).min(length);
            bytes.splice(at..end, piece);
        }
        _ => number(bytes, at, dice),
    }
}

fn word(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    // Most such words are aligned to their size.
    let size = [2, 4, 8][dice.below(3)];
    let at = if dice.below(4) > 0 { at / size * size } else { at };
    let any = dice.next() % (2 * bytes.len() as u64);
    let word = if dice.below(3) > 0 { WORDS[dice.below(WORDS.len())] } else { any };
    let word = if dice.below(6) == 0 { word.to_be_bytes() } else { word.to_le_bytes() };
    bytes[at..].iter_mut().zip(&word[..size]).for_each(|(byte, new)| *byte = *new);
}

fn piece(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let at = dice.below(bytes.len());
    let length = [8, 64, 1024, MOST_MORE][dice.below(4)];
    bytes[at..].iter().take(1 + dice.below(length)).copied().collect()
}

/// Replaces the next number by another.
fn number(bytes: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let Some(begin) = bytes[at..].iter().position(u8::is_ascii_digit).map(|digits| at + digits) else {
        return;
    };
    let end = bytes[begin..]
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .map_or(bytes.len(), |digits| begin + digits);
    bytes.splice(begin..end, NUMBERS[dice.below(NUMBERS.len())].bytes());
}

/// Updates the checksums of all entries in a zip archive's directory: otherwise hardly any mutation would reach
/// the readers of the entries.
pub fn with_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(4).position(|window| window == b"PK\x01\x02") {
        let entry = at + found;
        at = entry + 4;
        let number = |bytes: &[u8], at: usize, size: usize| {
            let bytes = bytes.get(at..at.checked_add(size)?)?;
            Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
        };
        let fixed = (|| {
            let (size, local) = (number(&bytes, entry + 20, 4)?, number(&bytes, entry + 42, 4)?);
            let data = local + 30 + number(&bytes, local + 26, 2)? + number(&bytes, local + 28, 2)?;
            let mut sum = flate2::Crc::new();
            sum.update(bytes.get(data..data.checked_add(size)?)?);
            let sum = sum.sum().to_le_bytes();
            bytes.get_mut(entry + 16..entry + 20)?.copy_from_slice(&sum);
            bytes.get_mut(local + 14..local + 18)?.copy_from_slice(&sum);
            Some(())
        })();
        if fixed.is_none() {
            break;
        }
    }
    bytes
}
