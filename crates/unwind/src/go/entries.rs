//! Writes entries of `.debug_frame` and `.eh_frame` (DWARF 5, section 6.4.1; LSB core, ".eh_frame"). Each row is
//! written as the difference from the row before.

use alloc::vec::Vec;
use core::ops::Range;

use super::way::Way;
use crate::isa::Isa;

/// DWARF expression for the caller's program counter if the frame pointer may be 0 for want of a caller: the
/// result is then 0 too.
pub const CALLER_IF_ANY: &[u8] = &[
    0x76, 0x00, 0x28, 0x04, 0x00, // bra +4 if rbp is not 0
    0x30, 0x2f, 0x03, 0x00, // 0, and to the end
    0x76, 0x08, 0x06, // the word at rbp + 8
];

/// DWARF expression for the caller's program counter before there is a frame: the word at rsp, or 0 if rbp is 0.
pub const CALLER_AT_ENTRY: &[u8] = &[0x76, 0x00, 0x28, 0x04, 0x00, 0x30, 0x2f, 0x03, 0x00, 0x77, 0x00, 0x06];

/// Register and offset in `struct ucontext` of rbp, rbx, r12 to r15 and the program counter; below, the stack
/// pointer's offset.
const SAVED: [(u8, u8); 7] = [(6, 120), (3, 128), (12, 72), (13, 80), (14, 88), (15, 96), (16, 168)];
const SAVED_SP: u8 = 160;
/// State at the start of a function.
const AT_ENTRY: Way = Way::Sp { depth: 0, frame: 0, saved: false };

/// Section to write entries for. The formats differ in how an FDE refers to its CIE.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// By where that is in the section.
    DebugFrame,
    /// By its distance back from the reference.
    EhFrame,
}

/// Writes entries.
pub(crate) struct Writer {
    isa: Isa,
    form: Form,
    pub(crate) bytes: Vec<u8>,
    /// Offset of the CIE that ordinary FDEs refer to.
    pub(crate) common: usize,
    /// Offset of the CIE for the function that signal handlers return to.
    signal: usize,
}

impl Writer {
    /// Starts with the CIEs. In the common one of x86_64, at first the CFA is rsp + 8, the return address is below it, and rbp is unchanged.
    /// In that of aarch64, the CFA is sp, and both are in their registers.
    pub(crate) fn new(isa: Isa, form: Form, bytes: Vec<u8>) -> Self {
        let mut out = Self { isa, form, common: bytes.len(), bytes, signal: 0 };
        if isa == Isa::Aarch64 {
            out.entry(None, &[1, 0, 1, 0x78, 30, 0x0c, 31, 0, 0x08, 30, 0x08, 29]);
            return out;
        }
        // Version 1, no augmentation, factors 1 and -8, return addresses in column 16.
        out.entry(None, &[1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0x08, 6]);
        out.signal = out.bytes.len();
        // The signal CIE also has the augmentation S. All registers are relative to rsp; the CFA is the saved stack
        // pointer.
        let [low, high] = [SAVED_SP | 0x80, SAVED_SP >> 7];
        let mut body = [&[1, b'S', 0, 1, 0x78, 16, 0x0f, 4, 0x77, low, high, 0x06][..]].concat();
        for (register, offset) in SAVED {
            let (low, high) = (offset & 0x7f | 0x80, offset >> 7);
            body.extend([0x10, register, 3, 0x77, low, high]);
        }
        out.entry(None, &body);
        out
    }

    /// Writes the FDE of the function that signal handlers return to.
    pub(super) fn signal_return(&mut self, range: &Range<u64>) {
        let Some(start) = range.start.checked_sub(1) else { return };
        let body = [start.to_le_bytes(), (range.end - start).to_le_bytes()].concat();
        self.entry(Some(self.signal), &body);
    }

    /// An entry that refers to the one at `common`, or is one to refer to.
    pub(crate) fn entry(&mut self, common: Option<usize>, body: &[u8]) {
        let length = (body.len() + 4).next_multiple_of(4);
        self.bytes.extend((length as u32).to_le_bytes());
        let id = match (self.form, common) {
            (Form::DebugFrame, None) => u32::MAX,
            (Form::DebugFrame, Some(common)) => common as u32,
            (Form::EhFrame, None) => 0,
            (Form::EhFrame, Some(common)) => (self.bytes.len() - common) as u32,
        };
        self.bytes.extend(id.to_le_bytes());
        self.bytes.extend(body);
        // nop
        self.bytes.resize(self.bytes.len() + length - 4 - body.len(), 0);
    }

    /// Writes an FDE for consecutive rows, unless they are unknown.
    pub(super) fn rows(&mut self, rows: &[(Range<u64>, Way)]) {
        let (Some((first, way)), Some((last, _))) = (rows.first(), rows.last()) else { return };
        if *way == Way::Unknown {
            return;
        }
        let mut body = Vec::new();
        body.extend(first.start.to_le_bytes());
        body.extend((last.end - first.start).to_le_bytes());
        let (mut at, mut before) = (first.start, AT_ENTRY);
        for (range, way) in rows {
            if *way != before {
                advance(range.start - at, &mut body);
                match self.isa {
                    Isa::Aarch64 => say_aarch64(*way, &mut body),
                    _ => say(*way, before, &mut body),
                }
                (at, before) = (range.start, *way);
            }
        }
        self.entry(Some(self.common), &body);
    }
}

/// `DW_CFA_advance_loc` in the form that fits.
pub(crate) fn advance(ahead: u64, body: &mut Vec<u8>) {
    let ahead = ahead as u32;
    match (ahead, u8::try_from(ahead), u16::try_from(ahead)) {
        (0, ..) => {}
        (1..0x40, Ok(short), _) => body.push(0x40 | short),
        (_, Ok(byte), _) => body.extend([0x02, byte]),
        (_, _, Ok(half)) => {
            body.push(0x03);
            body.extend(half.to_le_bytes());
        }
        _ => {
            body.push(0x04);
            body.extend(ahead.to_le_bytes());
        }
    }
}

/// Appends the instructions of a row on aarch64. Register 29 is the frame pointer, 30 the link register, 31 the stack pointer.
fn say_aarch64(way: Way, body: &mut Vec<u8>) {
    let (base, cfa, frame, saved) = match way {
        Way::Sp { depth, frame, saved } => (31, depth, frame, saved),
        Way::Fp { frame } => (29, frame.saturating_add(8), frame, true),
        Way::Root => return body.extend([0x07, 30]),
        Way::Entry | Way::Unknown => return,
    };
    body.extend([0x0c, base]);
    uleb(cfa, body);
    let mut register = |register: u8, words: Option<u64>| match words {
        Some(words) => {
            body.push(0x80 | register);
            uleb(words, body);
        }
        None => body.extend([0x08, register]),
    };
    register(30, (frame > 0).then_some(frame / 8));
    register(29, saved.then_some(frame / 8 + 1));
}

/// Appends the instructions that lead from one row to the next on x86_64. Register 6 is rbp, 7 is rsp, and 16 is the return
/// address.
fn say(way: Way, before: Way, body: &mut Vec<u8>) {
    let cfa = |register: u8, offset: u64, body: &mut Vec<u8>| {
        body.extend([0x0c, register]);
        uleb(offset, body);
    };
    match way {
        Way::Sp { depth, saved, .. } => {
            let was = match before {
                Way::Sp { depth, saved, .. } => Some((depth, saved)),
                _ => None,
            };
            match was {
                None => {
                    cfa(7, depth.saturating_add(8), body);
                    // offset 16
                    body.extend([0x90, 1]);
                }
                Some((old, _)) if old != depth => {
                    body.push(0x0e);
                    uleb(depth.saturating_add(8), body);
                }
                Some(_) => {}
            }
            if was.is_none_or(|(_, was)| was != saved) {
                // rbp is saved at CFA - 16, or unchanged.
                body.extend(if saved { [0x86, 2] } else { [0x08, 6] });
            }
        }
        Way::Fp { .. } => {
            cfa(6, 16, body);
            by_expression(CALLER_IF_ANY, body);
            body.extend([0x86, 2]);
        }
        Way::Entry => {
            cfa(7, 8, body);
            by_expression(CALLER_AT_ENTRY, body);
            body.extend([0x08, 6]);
        }
        Way::Root => body.extend([0x07, 16]),
        Way::Unknown => {}
    }
}

/// Appends an instruction that makes an expression the value of the return address.
fn by_expression(expression: &[u8], body: &mut Vec<u8>) {
    body.extend([0x16, 16, expression.len() as u8]);
    body.extend(expression);
}

pub(crate) fn uleb(mut value: u64, body: &mut Vec<u8>) {
    while value >= 0x80 {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8);
}

pub(crate) fn sleb(mut value: i64, body: &mut Vec<u8>) {
    while !(-0x40..0x40).contains(&value) {
        body.push(value as u8 | 0x80);
        value >>= 7;
    }
    body.push(value as u8 & 0x7f);
}
