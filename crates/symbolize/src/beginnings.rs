//! Beginnings of functions that neither a symbol nor unwind information has: the targets of calls in the code, and addresses that it takes.
//!
//! Code is searched for the bytes of such instructions at each place, as decoding needs to know where instructions begin. What looks like a target is
//! believed where code before it ends, or where it is aligned as functions are.

use std::ops::Range;

use object::elf::EM_X86_64;

use crate::elf::Image;

/// Largest code that is searched, in bytes.
const MOST: u64 = 32 << 20;
/// Alignment of functions by compilers.
const ALIGNED: u64 = 16;
/// Last bytes before a function: of a return, `int3`, `nop`, and zeros as padding.
const ENDS: [u8; 4] = [0xc3, 0xcc, 0x90, 0x00];
/// `call rel32`.
const CALL: u8 = 0xe8;
/// `lea REGISTER, [rip + rel32]`: the opcode, and the bits of its third byte that say so.
const LEA: (u8, u8, u8) = (0x8d, 0xc7, 0x05);

/// Beginnings of functions of a file, sorted.
#[derive(Debug, Default)]
pub(crate) struct Beginnings(Vec<u64>);

/// A section with code.
struct Code {
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl Beginnings {
    /// Searches the code of an image; finds nothing in code that is not of x86-64, or too large.
    pub fn read(image: &Image) -> Self {
        let sections = || image.sections.iter().filter(|section| section.executable);
        let size = sections().fold(0_u64, |sum, section| sum.saturating_add(section.size));
        if image.machine != EM_X86_64 || size > MOST {
            return Self::default();
        }
        let code = |section| {
            let bytes = image.read(section).ok()?;
            let end = section.address.checked_add(bytes.len() as u64)?;
            Some(Code { range: section.address..end, bytes })
        };
        let code: Vec<Code> = sections().filter_map(code).collect();
        let mut found: Vec<u64> = code.iter().map(|one| one.range.start).collect();
        found.extend(
            code.iter().flat_map(targets).filter(|&target| code.iter().any(|one| one.begins(target))),
        );
        found.sort_unstable();
        found.dedup();
        Self(found)
    }

    /// Returns all beginnings, sorted.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Returns the last beginning that is not after `address`.
    pub fn start(&self, address: u64) -> Option<u64> {
        self.0[..self.0.partition_point(|&start| start <= address)].last().copied()
    }
}

impl Code {
    /// Whether a function may begin at this address.
    fn begins(&self, address: u64) -> bool {
        if !self.range.contains(&address) {
            return false;
        }
        let before = address.checked_sub(self.range.start + 1).map(|before| self.bytes[before as usize]);
        address.is_multiple_of(ALIGNED) || before.is_none_or(|last| ENDS.contains(&last))
    }
}

/// Returns the addresses that instructions refer to: those they call, and those they take that are aligned.
fn targets(code: &Code) -> impl Iterator<Item = u64> {
    let at = |index: usize| -> Option<u64> {
        let offset = code.bytes.get(index..index + 4)?.try_into().ok()?;
        let after = code.range.start + index as u64 + 4;
        Some(after.wrapping_add_signed(i32::from_le_bytes(offset).into()))
    };
    let (opcode, mask, form) = LEA;
    code.bytes.windows(2).enumerate().filter_map(move |(index, bytes)| match bytes {
        [CALL, _] => at(index + 1),
        &[first, second] if first == opcode && second & mask == form => {
            at(index + 2).filter(|target| target.is_multiple_of(ALIGNED))
        }
        _ => None,
    })
}
