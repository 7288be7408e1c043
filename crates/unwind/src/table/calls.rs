//! Finds places where calls may end in x86_64 code (and in aarch64 code, which is simple), without disassembling it:
//! every byte sequence that looks like a call counts as one.
//!
//! So a row in which a call ends is never dropped; occasionally a row is kept for bytes within another instruction.
//! Instructions: Intel 64 manual, volume 2, CALL (`E8` rel32, `FF /2`); prefixes come before and do not matter. Far
//! calls (`FF /3`) do not count: 64-bit user code has none, and they push two words.

use core::ops::Range;

use super::keep::{Keep, SHORTEST_CALL};
use super::open::Around;
use crate::address::Svma;
use crate::isa::Isa;

/// The executable bytes of a file.
pub trait Text {
    /// Returns bytes from `at` on: at least 16, unless the code ends before; empty if the address is not code or
    /// cannot be read.
    fn bytes(&mut self, at: Svma) -> &[u8];

    /// Returns the stated addresses from the first byte of code to the last, end exclusive.
    fn span(&self) -> Range<Svma>;
}

/// Sections of code in memory, each with the stated address of its first byte.
impl<B: AsRef<[u8]>> Text for [(Svma, B)] {
    fn bytes(&mut self, at: Svma) -> &[u8] {
        let from = |(address, bytes): &'_ (Svma, B)| {
            let offset = usize::try_from(at.0.checked_sub(address.0)?).ok()?;
            bytes.as_ref().get(offset..).filter(|bytes| !bytes.is_empty()).map(|_| offset)
        };
        let found = self.iter().find_map(|section| Some((section, from(section)?)));
        found.and_then(|((_, bytes), offset)| bytes.as_ref().get(offset..)).unwrap_or_default()
    }

    fn span(&self) -> Range<Svma> {
        let end = |(address, bytes): &(Svma, B)| Svma(address.0.saturating_add(bytes.as_ref().len() as u64));
        let first = self.iter().map(|(address, _)| *address).min().unwrap_or_default();
        first..self.iter().map(end).max().unwrap_or_default()
    }
}

/// Length of the longest call in bytes, without prefixes: `FF`, ModRM, SIB, four bytes of displacement.
const LONGEST: usize = 7;

/// Selects rows in which a call may end.
pub(super) struct ByCalls<'t, T: ?Sized> {
    text: &'t mut T,
    span: Range<u64>,
}

impl<T: Text + ?Sized> Keep for ByCalls<'_, T> {
    const IS_EASY: bool = false;
    const SHORTEST: u64 = SHORTEST_CALL;

    fn row(&mut self, range: Range<u64>, _: Around) -> bool {
        self.has_call(range)
    }

    fn other(&mut self, isa: Isa, range: Range<u64>) -> bool {
        // Keep all ARM rows: ARM and Thumb code cannot be distinguished here.
        isa != Isa::Aarch64 || self.has_aarch64_call(range)
    }

    fn gap(&mut self, range: Range<u64>) -> bool {
        self.has_call(range)
    }
}

impl<'t, T: Text + ?Sized> ByCalls<'t, T> {
    pub(super) fn new(text: &'t mut T) -> Self {
        let span = text.span();
        ByCalls { text, span: span.start.0..span.end.0 }
    }

    /// Returns whether a row holds a call, by the Arm Architecture Reference Manual, C4.1: `BL`, `BLR` and the
    /// variants of `BLR` that check a signature.
    fn has_aarch64_call(&mut self, Range { start: mut at, end }: Range<u64>) -> bool {
        let is_call = |&word: &[u8; 4]| {
            let word = u32::from_le_bytes(word);
            word >> 26 == 0b10_0101 || word & 0xfeff_f000 == 0xd63f_0000
        };
        while at < end {
            let bytes = self.text.bytes(Svma(at));
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let words = bytes.get(..left.min(bytes.len())).unwrap_or_default().as_chunks::<4>().0;
            // Unreadable code may hold a call.
            if words.is_empty() || at % 4 != 0 || words.iter().any(is_call) {
                return true;
            }
            at += 4 * words.len() as u64;
        }
        false
    }

    /// Returns whether a row may hold a call. Rows begin and end between instructions, so a call lies within one row.
    fn has_call(&mut self, Range { start: mut at, end }: Range<u64>) -> bool {
        while at < end {
            let bytes = self.text.bytes(Svma(at));
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            if let Some(bytes) = bytes.get(..left) {
                return find(bytes, at, &self.span);
            }
            // Unreadable code may hold a call.
            if bytes.len() <= LONGEST || find(bytes, at, &self.span) {
                return true;
            }
            // A call that begins at the end of these bytes ends in the next ones.
            at += (bytes.len() - LONGEST + 1) as u64;
        }
        false
    }
}

/// Returns whether `code`, which is at `address`, has bytes of a call. Direct calls must lead into `span`, or to
/// address 0 if the callee is missing.
fn find(code: &[u8], address: u64, span: &Range<u64>) -> bool {
    let mut rest = code;
    while let Some(at) = rest.iter().position(|&byte| byte == 0xe8 || byte == 0xff) {
        let from = rest.get(at..).unwrap_or_default();
        let found = match from {
            [0xe8, a, b, c, d, after @ ..] => {
                let end = address.wrapping_add((code.len() - after.len()) as u64);
                let target = end.wrapping_add_signed(i32::from_le_bytes([*a, *b, *c, *d]).into());
                span.contains(&target) || target == 0
            }
            [0xff, operand @ ..] => indirect(operand).is_some_and(|length| length <= operand.len()),
            _ => false,
        };
        if found {
            return true;
        }
        rest = from.get(1..).unwrap_or_default();
    }
    false
}

/// Returns the length of the operand of an indirect call: ModRM, SIB, displacement. `None` for other instructions.
pub(crate) fn indirect(operand: &[u8]) -> Option<usize> {
    let modrm = *operand.first()?;
    if modrm >> 3 & 7 != 2 {
        return None;
    }
    let (mode, base) = (modrm >> 6, modrm & 7);
    let sib = if mode != 3 && base == 4 { Some(*operand.get(1)?) } else { None };
    let displacement = match mode {
        0 if base == 5 || sib.is_some_and(|sib| sib & 7 == 5) => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    Some(1 + usize::from(sib.is_some()) + displacement)
}
