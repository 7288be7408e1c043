//! `.ARM.exidx` and `.ARM.extab`: the function that holds an address, and the location of its unwind instructions.
//!
//! Reference: Exception Handling ABI for the Arm Architecture (IHI 0038) §6 and §7. The linker sorts the index by
//! address, so it can be searched in place. The instructions are interpreted in `opcodes`.

use core::ops::Range;

use super::opcodes;
use crate::address::Svma;
use crate::cfi::{CfiError, CfiErrorKind, Reader, SectionKind};
use crate::row::{RegisterRule, Row};

/// Size of an index entry in bytes: the start of the function, and how to unwind it.
const ENTRY: usize = 8;
/// `EXIDX_CANTUNWIND`, the second word of a function that has no caller.
const CANT_UNWIND: u32 = 1;
/// Maximum number of words after the first in an instruction list: the length is a byte.
const MAX_WORDS: usize = 255;
/// Maximum number of instruction bytes: three in the first word and four in each further word.
const MAX_BYTES: usize = 3 + 4 * MAX_WORDS;

/// A section and its load address.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) address: Svma,
    pub(crate) bytes: &'a [u8],
}

/// Unwind instructions in execution order.
pub(super) struct Instructions {
    bytes: [u8; MAX_BYTES],
    length: usize,
}

impl Instructions {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    /// Appends the lowest `count` bytes of a word, most significant first.
    fn push_word(&mut self, word: u32, count: usize) {
        for &byte in word.to_be_bytes().iter().skip(4 - count) {
            self.push(byte);
        }
    }
}

/// Returns the row of the function that holds `pc`, or `None` if no function begins at or before it. The row is valid
/// at the function's calls.
pub(crate) fn row_at(
    exidx: Placed<'_>,
    extab: Option<Placed<'_>>,
    pc: Svma,
) -> Result<Option<Row>, CfiError> {
    let Some((index, range)) = search(exidx, pc) else { return Ok(None) };
    let mut reader = Reader::new(exidx.bytes, index * ENTRY + 4, SectionKind::Exidx);
    let (at, word) = (reader.position(), reader.u32()?);
    let mut instructions = Instructions { bytes: [0; MAX_BYTES], length: 0 };
    if word == CANT_UNWIND {
        let mut row = Row::empty(SectionKind::Exidx, false);
        row.range = range;
        if let Some(rule) = row.registers.get_mut(usize::from(super::PC)) {
            *rule = RegisterRule::Undefined;
        }
        return Ok(Some(row));
    }
    let mut section = SectionKind::Exidx;
    if word >> 31 == 1 {
        // Only the instructions of the first personality routine fit into the index.
        if word >> 24 != 0x80 {
            return Err(reader.error(CfiErrorKind::UnknownPersonality((word >> 24) as u8)));
        }
        instructions.push_word(word, 3);
    } else {
        let extab = extab.ok_or_else(|| reader.error(CfiErrorKind::Truncated))?;
        section = SectionKind::Extab;
        read_table(extab, relative(exidx.address, at, word), &mut instructions)?;
    }
    let mut row = opcodes::row(instructions.as_slice(), section, reader.position())?;
    row.range = range;
    Ok(Some(row))
}

/// Reads the instructions of the `.ARM.extab` entry at the stated address `at`.
fn read_table(extab: Placed<'_>, at: u32, into: &mut Instructions) -> Result<(), CfiError> {
    let offset = at.wrapping_sub(extab.address.0 as u32);
    let mut reader = Reader::new(extab.bytes, offset as usize, SectionKind::Extab);
    let first = reader.u32()?;
    let words = match first >> 24 {
        0x80 => {
            into.push_word(first, 3);
            0
        }
        0x81 | 0x82 => {
            into.push_word(first, 2);
            first >> 16 & 0xff
        }
        // A custom personality routine. GNU's and LLVM's keep the instructions after its address, followed by
        // language-specific data.
        0x00..=0x7f => {
            let word = reader.u32()?;
            into.push_word(word, 3);
            word >> 24
        }
        other => return Err(reader.error(CfiErrorKind::UnknownPersonality(other as u8))),
    };
    for _ in 0..words {
        into.push_word(reader.u32()?, 4);
    }
    Ok(())
}

/// Finds the entry whose function holds `pc`, and that function's address range. The last function has no known end.
fn search(exidx: Placed<'_>, pc: Svma) -> Option<(usize, Range<Svma>)> {
    let (entries, _) = exidx.bytes.as_chunks::<ENTRY>();
    let begin = |index: usize| {
        let entry = entries.get(index)?;
        let word = u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        // Linkers may leave the Thumb bit set.
        Some(u64::from(relative(exidx.address, index * ENTRY, word) & !1))
    };
    let (mut low, mut high) = (0, entries.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if begin(middle)? <= pc.0 { low = middle + 1 } else { high = middle }
    }
    let index = low.checked_sub(1)?;
    let end = begin(low).unwrap_or(1 << 32);
    (pc.0 < end).then_some((index, Svma(begin(index)?)..Svma(end)))
}

/// Returns the start addresses of the functions, in index order.
pub(crate) fn starts(exidx: Placed<'_>) -> impl Iterator<Item = Svma> {
    let entries = exidx.bytes.as_chunks::<ENTRY>().0.iter().enumerate();
    entries.map(move |(index, &[a, b, c, d, ..])| {
        let word = u32::from_le_bytes([a, b, c, d]);
        Svma(u64::from(relative(exidx.address, index * ENTRY, word) & !1))
    })
}

/// Decodes a 31-bit pointer relative to its own location (`prel31`).
fn relative(section: Svma, offset: usize, word: u32) -> u32 {
    let distance = ((word << 1) as i32 >> 1) as u32;
    (section.0 as u32).wrapping_add(offset as u32).wrapping_add(distance)
}
