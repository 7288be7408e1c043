//! Rules of `.sframe` sections, versions 1 to 3, as entries of an `.eh_frame`: for code that has no others (`-fno-asynchronous-unwind-tables` with the
//! assembler's `--gsframe`).
//!
//! The format is that of include/sframe.h and "The SFrame Format" of binutils. Only x86_64 is read. A section is of linked files: its places
//! are relative to where it is loaded. What makes no sense has no rules: no other function suffers from it.

use alloc::vec::Vec;
use core::ops::Range;

use crate::address::Svma;
use crate::go::entries::{Form, Writer, advance, sleb, uleb};
use crate::isa::Isa;

const MAGIC: u16 = 0xdee2;
const AMD64_LITTLE_ENDIAN: u8 = 3;
/// Bytes of the header, before what its `auxhdr_len` counts.
const HEADER: usize = 28;
/// Places of functions are relative to themselves, and not to the section.
const FUNC_START_PCREL: u8 = 4;
/// Rows are those of the first block of a function, all of whose blocks are alike, as in a procedure linkage table.
const IS_REPEATED: u8 = 1 << 4;
const IS_SIGNAL: u8 = 1 << 7;
/// Kind of a function whose rows say of what register each value is made.
const FLEXIBLE: u8 = 1;
/// The most rows that blocks of one function may come to.
const MOST_REPEATED: usize = 1 << 16;

const RBP: u8 = 6;
const RSP: u8 = 7;
const RETURN_ADDRESS: u8 = 16;

/// A function.
struct Function {
    range: Range<u64>,
    info: u8,
    is_flexible: bool,
    block: u8,
    rows: usize,
    /// Offset of the function's rows.
    at: usize,
}

/// Rule that yields a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Unchanged.
    Same,
    /// Stored at this distance from the CFA.
    At(i64),
    /// A register plus this offset.
    Sum(u64, i64),
    /// The word at a register plus this offset.
    Behind(u64, i64),
    /// No value.
    None,
}

/// The rules from one address of a function on.
struct FrameRow {
    start: u64,
    cfa: Value,
    fp: Value,
    ra: Value,
}

/// Entries for the functions that `wanted` asks for by their first addresses, to be put at the end of an `.eh_frame`. `None`: the section is none that
/// is known, or has none of these functions.
pub fn eh_frame(section: &[u8], address: Svma, mut wanted: impl FnMut(Svma) -> bool) -> Option<Vec<u8>> {
    let section = Section::read(section, address)?;
    let mut out = Writer::new(Isa::X86_64, Form::EhFrame, Vec::new());
    let empty = out.bytes.len();
    // Functions that share their rows are none that a compiler has made.
    let mut rows_left = section.bytes.len();
    for function in section.functions() {
        if wanted(Svma(function.range.start)) {
            let rows = section.write(&function, rows_left, &mut out);
            rows_left = rows_left.saturating_sub(rows);
        }
    }
    (out.bytes.len() > empty).then_some(out.bytes)
}

/// A section whose header makes sense.
struct Section<'a> {
    bytes: &'a [u8],
    address: u64,
    version: u8,
    is_relative: bool,
    ra_offset: i64,
    functions: usize,
    /// Offsets of the functions and of the rows.
    functions_at: usize,
    rows_at: usize,
}

impl<'a> Section<'a> {
    fn read(bytes: &'a [u8], address: Svma) -> Option<Self> {
        let (version, flags) = (*bytes.get(2)?, *bytes.get(3)?);
        let [arch, fixed_fp, fixed_ra, extra, ..] = *bytes.get(4..)? else { return None };
        let is_known = number(bytes, 0, 2)? == u64::from(MAGIC)
            && (1..=3).contains(&version)
            && arch == AMD64_LITTLE_ENDIAN
            && fixed_fp == 0;
        let header = HEADER + usize::from(extra);
        let place = |at| header.checked_add(usize::try_from(number(bytes, at, 4)?).ok()?);
        is_known.then_some(())?;
        Some(Self {
            bytes,
            address: address.0,
            version,
            is_relative: version == 3 || flags & FUNC_START_PCREL != 0,
            ra_offset: fixed_ra.cast_signed().into(),
            functions: number(bytes, 8, 4)? as usize,
            functions_at: place(20)?,
            rows_at: place(24)?,
        })
    }

    fn functions(&self) -> impl Iterator<Item = Function> {
        let each = match self.version {
            1 => 17,
            2 => 20,
            _ => 16,
        };
        let places = (0..self.functions).map_while(move |index| {
            let at = self.functions_at.checked_add(index.checked_mul(each)?)?;
            self.bytes.get(at..at.checked_add(each)?).map(|_| at)
        });
        places.filter_map(|at| self.function(at))
    }

    fn function(&self, at: usize) -> Option<Function> {
        let width = if self.version == 3 { 8 } else { 4 };
        let base = if self.is_relative { self.address.wrapping_add(at as u64) } else { self.address };
        let start = base.wrapping_add(signed(number(self.bytes, at, width)?, width).cast_unsigned());
        let size = number(self.bytes, at + width, 4)?;
        let rows_at = usize::try_from(number(self.bytes, at + width + 4, 4)?).ok()?;
        let rows_at = self.rows_at.checked_add(rows_at)?;
        let range = start..start.checked_add(size).filter(|&end| end > start)?;
        let byte = |at: usize| self.bytes.get(at).copied();
        if self.version == 3 {
            let rows = number(self.bytes, rows_at, 2)? as usize;
            let [info, kind, block] = *self.bytes.get(rows_at + 2..)?.first_chunk()?;
            let is_flexible = match kind & 0x1f {
                0 => false,
                FLEXIBLE => true,
                _ => return None,
            };
            return Some(Function { range, info, is_flexible, block, rows, at: rows_at + 5 });
        }
        let (rows, info) = (number(self.bytes, at + 12, 4)? as usize, byte(at + 16)?);
        let block = if self.version == 2 { byte(at + 17)? } else { 16 };
        Some(Function { range, info, is_flexible: false, block, rows, at: rows_at })
    }

    /// The rows of a function, as far as they make sense.
    fn rows(&self, function: &Function, most: usize) -> Vec<FrameRow> {
        let width = match function.info & 0xf {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => return Vec::new(),
        };
        let (mut at, mut rows) = (function.at, Vec::new());
        while rows.len() < function.rows.min(most) {
            let Some((row, next)) = self.row(function, at, width) else { break };
            let is_later = rows.last().is_none_or(|last: &FrameRow| last.start < row.start);
            if !is_later || row.start >= function.range.end - function.range.start {
                break;
            }
            rows.push(row);
            at = next;
        }
        rows
    }

    /// The row at a place, and where the next one is.
    fn row(&self, function: &Function, at: usize, width: usize) -> Option<(FrameRow, usize)> {
        let start = number(self.bytes, at, width)?;
        let info = *self.bytes.get(at + width)?;
        let (count, size) = (usize::from(info >> 1 & 0xf), 1_usize << (info >> 5 & 3));
        if size > 4 {
            return None;
        }
        let words = at + width + 1;
        let next = words + count * size;
        self.bytes.get(words..next)?;
        let word = |index: usize| {
            let known = (index < count).then(|| number(self.bytes, words + index * size, size))?;
            known.map(|word| (word, signed(word, size)))
        };
        let mut row = FrameRow { start, cfa: Value::Same, fp: Value::Same, ra: Value::At(self.ra_offset) };
        if count == 0 {
            row.ra = Value::None;
            row.cfa = Value::Sum(RSP.into(), 8);
        } else if function.is_flexible {
            let value = |index: usize| Some((word(index)?.0, word(index + 1)?.1));
            let made = |(control, offset): (u64, i64)| {
                let (register, is_behind) = (control >> 3, control & 2 != 0);
                match (control & 1 != 0, is_behind) {
                    (true, true) => Some(Value::Behind(register, offset)),
                    (true, false) => Some(Value::Sum(register, offset)),
                    (false, true) => Some(Value::At(offset)),
                    (false, false) => None,
                }
            };
            row.cfa = made(value(0)?).filter(|cfa| !matches!(cfa, Value::At(_)))?;
            // One word of zero: the return address is where it always is.
            let after = match word(2) {
                Some((0, _)) => 3,
                Some(_) => {
                    row.ra = made(value(2)?)?;
                    4
                }
                None => count,
            };
            if after < count {
                row.fp = made(value(after)?)?;
            }
        } else {
            let base = if info & 1 == 1 { RSP } else { RBP };
            row.cfa = Value::Sum(base.into(), word(0)?.1);
            row.fp = word(1).map_or(Value::Same, |(_, offset)| Value::At(offset));
        }
        let is_whole = |value: Value| !matches!(value, Value::At(offset) if offset % 8 != 0);
        (is_whole(row.fp) && is_whole(row.ra)).then_some((row, next))
    }

    /// Writes the rules of a function, unless it has more than `most` rows. Returns how many were looked at.
    fn write(&self, function: &Function, most: usize, out: &mut Writer) -> usize {
        let rows = self.rows(function, most);
        let size = function.range.end - function.range.start;
        let block = if function.info & IS_REPEATED == 0 { size } else { u64::from(function.block) };
        let blocks = size.checked_div(block).unwrap_or(0) as usize;
        let Some(first) = rows.first().map(|row| row.start) else { return 0 };
        let count = blocks.max(1).saturating_mul(rows.len());
        if function.info & IS_SIGNAL != 0 || blocks > 1 && count > MOST_REPEATED {
            return rows.len();
        }
        let mut body = Vec::new();
        body.extend(function.range.start.wrapping_add(first).to_le_bytes());
        body.extend((size - first).to_le_bytes());
        let mut at = first;
        for begin in (0..blocks.max(1) as u64).map(|index| index * block) {
            for row in rows.iter().filter(|row| row.start < block) {
                advance(begin + row.start - at, &mut body);
                at = begin + row.start;
                say(row, &mut body);
            }
        }
        out.entry(Some(out.common), &body);
        count
    }
}

/// The instructions that say all of a row (DWARF 5, section 6.4.2).
fn say(row: &FrameRow, body: &mut Vec<u8>) {
    match row.cfa {
        Value::Sum(register, offset) => match u64::try_from(offset) {
            Ok(offset) => {
                body.push(0x0c);
                uleb(register, body);
                uleb(offset, body);
            }
            Err(_) => expression(&[0x0f], (register, offset), &[], body),
        },
        Value::Behind(register, offset) => expression(&[0x0f], (register, offset), &[0x06], body),
        Value::Same | Value::At(_) | Value::None => {}
    }
    for (register, value) in [(RBP, row.fp), (RETURN_ADDRESS, row.ra)] {
        match value {
            Value::Same => body.extend([0x08, register]),
            Value::At(offset) => {
                body.extend([0x11, register]);
                // Factored by -8, as the entry that it refers to says.
                sleb(-(offset / 8), body);
            }
            Value::Behind(base, offset) => expression(&[0x10, register], (base, offset), &[], body),
            Value::Sum(base, offset) => expression(&[0x16, register], (base, offset), &[], body),
            Value::None => body.extend([0x07, register]),
        }
    }
}

/// An instruction with an expression: a register plus an offset, and what is done with that.
fn expression(instruction: &[u8], (register, offset): (u64, i64), then: &[u8], body: &mut Vec<u8>) {
    // DW_OP_bregx
    let mut code = Vec::from([0x92]);
    match u8::try_from(register) {
        Ok(register @ 0..32) => code = Vec::from([0x70 + register]),
        _ => uleb(register, &mut code),
    }
    sleb(offset, &mut code);
    code.extend(then);
    body.extend(instruction);
    uleb(code.len() as u64, body);
    body.extend(code);
}

/// Reads a little-endian number of `width` bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Interprets a number of `width` bytes as signed.
fn signed(number: u64, width: usize) -> i64 {
    let unused = 64 - 8 * width as u32;
    (number << unused).cast_signed() >> unused
}
