//! Addresses in libraries whose symbols were removed, found by the code of exported functions.

use std::fs::File;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use plumb_unwind::Isa;

use super::READS_RACTOR;
use crate::image::{Image, isa, linked_address};

/// Finds the pointer to the main ractor: what `rb_ractor_stdout` compares with 0 before all else, to find out whether there is one ractor only
/// (`rb_ractor_main_p` in Ruby's ractor_core.h).
pub(super) fn ractor(image: &Image, file: &File) -> Option<u64> {
    let (at, code) = (image.address(READS_RACTOR)?, image.content(READS_RACTOR)?);
    let found = if isa(file)? == Isa::X86_64 { x86_64(at, code) } else { aarch64(at, code) };
    match found? {
        Compared::Variable(address) => Some(address),
        Compared::Pointer(word) => linked_address(file, word),
    }
}

/// Memory that is compared with 0.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    /// The variable itself.
    Variable(u64),
    /// A word of the global offset table, which points to it.
    Pointer(u64),
}

/// `lea` or `mov` of a static address to a register, then `cmpq $0` of what the register points to; `cmpq $0` of a static address; or such a `mov` and
/// `test` of the register.
fn x86_64(at: u64, code: &[u8]) -> Option<Compared> {
    let mut taken: Option<(Mnemonic, Register, u64)> = None;
    for instruction in Decoder::with_ip(64, code, at, DecoderOptions::NONE) {
        // Not relative to a thread, as the guard of the stack is.
        let is_static = instruction.segment_prefix() == Register::None
            && matches!(instruction.memory_base(), Register::RIP | Register::None)
            && instruction.memory_index() == Register::None;
        let address = instruction.memory_displacement64();
        match (instruction.mnemonic(), instruction.op0_kind(), instruction.op1_kind()) {
            (by @ (Mnemonic::Lea | Mnemonic::Mov), OpKind::Register, OpKind::Memory) if is_static => {
                taken = taken.or(Some((by, instruction.op0_register(), address)));
            }
            (Mnemonic::Cmp, OpKind::Memory, _) if is_static => return Some(Compared::Variable(address)),
            (Mnemonic::Cmp, OpKind::Memory, _) => {
                let (by, _, address) = taken.filter(|&(_, to, _)| to == instruction.memory_base())?;
                return Some(if by == Mnemonic::Lea {
                    Compared::Variable(address)
                } else {
                    Compared::Pointer(address)
                });
            }
            (Mnemonic::Test, OpKind::Register, _) => {
                let (_, _, address) =
                    taken.filter(|&(by, to, _)| by == Mnemonic::Mov && to == instruction.op0_register())?;
                return Some(Compared::Variable(address));
            }
            (Mnemonic::INVALID | Mnemonic::Call | Mnemonic::Ret, ..) => break,
            _ => {}
        }
    }
    None
}

/// `adrp xA, page` and `ldr xB, [xA, #offset]`: the variable, or, if what was loaded is an address of memory itself, a pointer to it.
fn aarch64(at: u64, code: &[u8]) -> Option<Compared> {
    let words = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let mut page = None;
    let mut loaded: Option<(u32, u64)> = None;
    for (index, word) in words.enumerate() {
        let (to, from) = (word & 31, word >> 5 & 31);
        if word & 0x9f00_0000 == 0x9000_0000 {
            let pages = ((word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3).cast_signed() << 11 >> 11;
            let here = at.wrapping_add(4 * index as u64) & !0xfff;
            page = page.or(Some((to, here.wrapping_add_signed(i64::from(pages) << 12))));
        } else if word & 0xffc0_0000 == 0xf940_0000 {
            let offset = u64::from(word >> 10 & 0xfff) * 8;
            match (loaded, page) {
                (Some((register, address)), _) if register == from => {
                    return Some(Compared::Pointer(address));
                }
                (None, Some((register, page))) if register == from => {
                    loaded = Some((to, page.wrapping_add(offset)))
                }
                _ => {}
            }
        } else if word & 0x7e00_0000 == 0x3400_0000 && loaded.is_some_and(|(register, _)| register == to) {
            // cbz, cbnz
            return loaded.map(|(_, address)| Compared::Variable(address));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x86_64_code_names_what_it_compares_with_0() {
        let found = |code: &[u8]| x86_64(0x1000, &[code, &[0x90; 8]].concat());
        let endbr = [0xf3, 0x0f, 0x1e, 0xfa];
        let lea = [&endbr[..], &[0x48, 0x8d, 0x05, 0xf5, 0x0f, 0, 0, 0x48, 0x83, 0x38, 0]].concat();
        assert_eq!(found(&lea), Some(Compared::Variable(0x2000)));
        assert_eq!(
            found(&[0x48, 0x8b, 0x1d, 0xf9, 0x0f, 0, 0, 0x48, 0x83, 0x3b, 0]),
            Some(Compared::Pointer(0x2000))
        );
        assert_eq!(
            found(&[0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0, 0x48, 0x85, 0xc0]),
            Some(Compared::Variable(0x2000))
        );
        assert_eq!(found(&[0x48, 0x83, 0x3d, 0xf8, 0x0f, 0, 0, 0]), Some(Compared::Variable(0x2000)));
        // mov %fs:0x28,%rax
        let guarded = [&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0][..], &lea[4..]].concat();
        assert_eq!(found(&guarded), Some(Compared::Variable(0x2005)));
        assert_eq!(
            found(&[0x48, 0x8d, 0x05, 0xf5, 0x0f, 0, 0, 0x48, 0x83, 0x3b, 0]),
            None,
            "another register"
        );
    }

    #[test]
    fn aarch64_code_names_what_it_compares_with_0() {
        let found = |words: &[u32]| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            aarch64(0x1a_d640, &code)
        };
        // Debian's Ruby 3.3: paciasp; stp; mov; str; adrp x19, 44f000; ldr x19, [x19, #880]; ldr x0, [x19]; cbz x0
        let head = [0xd503_233f, 0xa9be_7bfd, 0x9100_03fd, 0xf900_0bf3, 0xd000_1513, 0xf941_ba73];
        assert_eq!(
            found(&[&head[..], &[0xf940_0260, 0xb400_0100]].concat()),
            Some(Compared::Pointer(0x44_f370))
        );
        // cbz x19
        assert_eq!(found(&[&head[..], &[0xb400_0113]].concat()), Some(Compared::Variable(0x44_f370)));
        assert_eq!(found(&head), None, "truncated");
    }
}
