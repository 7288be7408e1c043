//! Recognizes calls and jumps, to decide whether a word may be a return address.
//!
//! Instructions: Intel 64 manual, volume 2, CALL (`E8` rel32, `FF /2`) and JMP (`E9`, `EB`, `FF /4`); Arm architecture
//! reference manual, C6.2, BL, BLR, B, BR.

use crate::address::Avma;
use crate::isa::Isa;
use crate::table::indirect_call;

/// Length of the longest call in bytes, without prefixes, which come before it and do not matter.
pub const LONGEST: usize = 7;
/// Number of bytes of a callee that are read to see whether it only jumps on.
pub(super) const STUB: usize = 16;

/// The target of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTarget {
    /// This address.
    Direct(Avma),
    /// Through a register or memory.
    Indirect,
}

/// Jump that a function consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// To this address.
    To(Avma),
    /// Through memory, as in stubs of imported functions.
    Imported,
}

/// Returns the possible numbers of bytes to read before a return address, in descending order.
pub(super) fn lengths(isa: Isa) -> &'static [usize] {
    match isa {
        Isa::X86_64 => &[LONGEST, 5, 3, 2],
        Isa::Aarch64 => &[4],
        Isa::Arm => &[],
    }
}

/// Returns the calls that `code`, which ends at `end`, may end with. On x86_64 the same bytes may decode as several.
pub fn before(isa: Isa, code: &[u8], end: Avma) -> impl Iterator<Item = CallTarget> + use<> {
    let (direct, through) = match isa {
        Isa::X86_64 => (x86_64_direct(code, end), x86_64_indirect(code)),
        Isa::Aarch64 => aarch64_call(code, end),
        Isa::Arm => (None, false),
    };
    direct.map(CallTarget::Direct).into_iter().chain(through.then_some(CallTarget::Indirect))
}

/// Calls `visit` with the targets of direct calls in `code`, which is at `at`. On x86_64 every byte sequence that
/// looks like a call counts as one; a false one rarely leads anywhere near.
pub fn targets(isa: Isa, code: &[u8], at: Avma, mut visit: impl FnMut(Avma)) {
    match isa {
        Isa::X86_64 => {
            for (index, call) in code.windows(5).enumerate().filter(|(_, call)| call.first() == Some(&0xe8)) {
                x86_64_direct(call, at.offset(index as i64 + 5)).into_iter().for_each(&mut visit);
            }
        }
        Isa::Aarch64 => {
            for (index, call) in code.chunks_exact(4).enumerate() {
                aarch64_call(call, at.offset(index as i64 * 4 + 4)).0.into_iter().for_each(&mut visit);
            }
        }
        Isa::Arm => {}
    }
}

/// Calls `visit` with the targets of direct jumps in `code`, which is at `at`, including conditional ones; with
/// `None` for jumps through memory or a register. On x86_64 every byte sequence that looks like a jump counts as one.
pub fn jumps(isa: Isa, code: &[u8], at: Avma, mut visit: impl FnMut(Option<Avma>)) {
    match isa {
        Isa::X86_64 => {
            for index in 0..code.len() {
                let end = |length: i64| at.offset(index as i64 + length);
                let far = |a, b, c, d| i64::from(i32::from_le_bytes([a, b, c, d]));
                match *code.get(index..).unwrap_or_default() {
                    // JMP rel32; Jcc rel32; either with rel8; JMP through memory or a register.
                    [0xe9, a, b, c, d, ..] => visit(Some(end(5).offset(far(a, b, c, d)))),
                    [0x0f, 0x80..=0x8f, a, b, c, d, ..] => visit(Some(end(6).offset(far(a, b, c, d)))),
                    [0xeb | 0x70..=0x7f, near, ..] => visit(Some(end(2).offset((near as i8).into()))),
                    [0xff, operand, ..] if operand & 0x38 == 0x20 => visit(None),
                    _ => {}
                }
            }
        }
        Isa::Aarch64 => {
            for (index, word) in
                code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).enumerate()
            {
                if word >> 26 == 0b000101 {
                    visit(Some(branch(word, at.offset(index as i64 * 4))));
                } else if word & 0xffff_fc1f == 0xd61f_0000 {
                    visit(None);
                }
            }
        }
        Isa::Arm => {}
    }
}

fn x86_64_direct(code: &[u8], end: Avma) -> Option<Avma> {
    let Some([0xe8, relative @ ..]) = code.last_chunk::<5>() else { return None };
    Some(end.offset(i32::from_le_bytes(*relative).into()))
}

fn x86_64_indirect(code: &[u8]) -> bool {
    (2..=code.len()).any(|length| match code.get(code.len() - length..) {
        Some([0xff, operand @ ..]) => indirect_call(operand) == Some(operand.len()),
        _ => false,
    })
}

fn aarch64_call(code: &[u8], end: Avma) -> (Option<Avma>, bool) {
    let Some(&word) = code.last_chunk::<4>() else { return (None, false) };
    let word = u32::from_le_bytes(word);
    let direct = (word >> 26 == 0b100101).then(|| branch(word, end.offset(-4)));
    // BLR, and the BLRAA family, which checks a signature.
    let through = word & 0xfeff_f000 == 0xd63f_0000;
    (direct, through)
}

/// Returns the target of B or BL at `at`.
fn branch(word: u32, at: Avma) -> Avma {
    at.offset(i64::from((word << 6) as i32 >> 6) * 4)
}

/// Returns the jump with which the function at `at` begins, if any. `code` holds its first bytes.
pub(super) fn jump(isa: Isa, code: &[u8; STUB], at: Avma) -> Option<Jump> {
    match isa {
        Isa::X86_64 => x86_64_jump(code, at),
        Isa::Aarch64 => aarch64_jump(code, at),
        Isa::Arm => None,
    }
}

fn x86_64_jump(code: &[u8; STUB], at: Avma) -> Option<Jump> {
    let mut rest = &code[..];
    // ENDBR64, then perhaps BND.
    rest = rest.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(rest);
    rest = rest.strip_prefix(&[0xf2]).unwrap_or(rest);
    let after = |left: &[u8]| at.offset((STUB - left.len()) as i64);
    match rest {
        [0xe9, a, b, c, d, left @ ..] => {
            Some(Jump::To(after(left).offset(i32::from_le_bytes([*a, *b, *c, *d]).into())))
        }
        [0xeb, relative, left @ ..] => Some(Jump::To(after(left).offset((*relative as i8).into()))),
        [0xff, 0x25, ..] => Some(Jump::Imported),
        _ => None,
    }
}

fn aarch64_jump(code: &[u8; STUB], at: Avma) -> Option<Jump> {
    let (words, _) = code.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word)).zip((0..).step_by(4)).peekable();
    // BTI C.
    words.next_if(|&(word, _)| word == 0xd503_245f);
    let &(first, offset) = words.peek()?;
    if first >> 26 == 0b000101 {
        return Some(Jump::To(branch(first, at.offset(offset))));
    }
    // ADRP x16; LDR x17; ADD x16; BR x17. Only linkers use these registers this way.
    let is_page = first & 0x9f00_001f == 0x9000_0010;
    let loads = words.nth(1).is_some_and(|(word, _)| word & 0xffc0_03ff == 0xf940_0211);
    (is_page && loads).then_some(Jump::Imported)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn calls(isa: Isa, code: &[u8]) -> Vec<CallTarget> {
        before(isa, code, Avma(0x1000)).collect()
    }

    /// Encodings are from GNU as.
    #[test]
    fn calls_of_x86_64() {
        let x = Isa::X86_64;
        assert_eq!(calls(x, &[0x90, 0xe8, 0, 1, 0, 0]), [CallTarget::Direct(Avma(0x1100))]);
        assert_eq!(calls(x, &[0xe8, 0xfb, 0xff, 0xff, 0xff]), [CallTarget::Direct(Avma(0xffb))]);
        for code in [
            &[0xff, 0xd0][..],                          // call *%rax
            &[0x41, 0xff, 0xd3],                        // call *%r11
            &[0xff, 0x50, 0x18],                        // call *0x18(%rax)
            &[0xff, 0x14, 0xd8],                        // call *(%rax,%rbx,8)
            &[0xff, 0x54, 0x24, 0x08],                  // call *8(%rsp)
            &[0xff, 0x15, 1, 2, 3, 0],                  // call *0x30201(%rip)
            &[0xff, 0x14, 0xc5, 0, 0, 0x40, 0],         // call *0x400000(,%rax,8)
            &[0x42, 0xff, 0x94, 0xe3, 0, 1, 0, 0][1..], // call *0x100(%rbx,%r12,8)
        ] {
            assert_eq!(calls(x, code), [CallTarget::Indirect], "{code:x?}");
        }
        // jmp *%rax, push, a far call, nops, a call that is not at the end.
        for code in [&[0xff, 0xe0][..], &[0xff, 0x30], &[0xff, 0x18], &[0x90; 7], &[0xe8, 0, 0, 0, 0, 0x90]] {
            assert_eq!(calls(x, code), [], "{code:x?}");
        }
    }

    #[test]
    fn calls_of_aarch64() {
        let a = Isa::Aarch64;
        assert_eq!(calls(a, &0x9400_0003_u32.to_le_bytes()), [CallTarget::Direct(Avma(0xffc + 12))]);
        assert_eq!(calls(a, &0x97ff_ffff_u32.to_le_bytes()), [CallTarget::Direct(Avma(0xff8))]);
        assert_eq!(calls(a, &0xd63f_0060_u32.to_le_bytes()), [CallTarget::Indirect], "blr x3");
        assert_eq!(calls(a, &0xd73f_0861_u32.to_le_bytes()), [CallTarget::Indirect], "blraa x3, x1");
        assert_eq!(calls(a, &0xd61f_0060_u32.to_le_bytes()), [], "br x3");
        assert_eq!(calls(Isa::Arm, &[0; 4]), []);
    }

    #[test]
    fn jumps_in_code() {
        let found = |isa, code: &[u8]| {
            let mut found = Vec::new();
            jumps(isa, code, Avma(0x1000), |target| found.push(target));
            found
        };
        // ret; jmp 0x1106; jne 0x110c; jmp *%rax; jmp *8(%rdi); jmp 0x1000
        let code =
            [0xc3, 0xe9, 0, 1, 0, 0, 0x0f, 0x85, 0, 1, 0, 0, 0x90, 0xff, 0xe0, 0xff, 0x67, 8, 0xeb, 0xec];
        let expected = [Some(Avma(0x1106)), Some(Avma(0x110c)), None, None, Some(Avma(0x1000))];
        assert_eq!(found(Isa::X86_64, &code), expected);
        let code = [0xd503_201f_u32, 0x1400_0002, 0xd61f_0220].map(u32::to_le_bytes);
        assert_eq!(found(Isa::Aarch64, code.as_flattened()), [Some(Avma(0x100c)), None]);
        assert_eq!(found(Isa::Arm, &code.concat()), []);
    }

    #[test]
    fn stubs() {
        let stub = |bytes: &[u8]| {
            let mut code = [0x90; STUB];
            code[..bytes.len()].copy_from_slice(bytes);
            x86_64_jump(&code, Avma(0x1000))
        };
        assert_eq!(stub(&[0xe9, 0, 1, 0, 0]), Some(Jump::To(Avma(0x1105))));
        assert_eq!(stub(&[0xeb, 0xfe]), Some(Jump::To(Avma(0x1000))));
        assert_eq!(stub(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4]), Some(Jump::Imported));
        assert_eq!(stub(&[0x55]), None);
        let words = |words: [u32; 4]| {
            let mut code = [0; STUB];
            for (to, word) in code.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            aarch64_jump(&code, Avma(0x1000))
        };
        assert_eq!(words([0x1400_0002, 0, 0, 0]), Some(Jump::To(Avma(0x1008))));
        assert_eq!(words([0xd503_245f, 0x17ff_ffff, 0, 0]), Some(Jump::To(Avma(0x1000))));
        assert_eq!(words([0x9000_0090, 0xf947_c211, 0x913e_0210, 0xd61f_0220]), Some(Jump::Imported));
        assert_eq!(words([0xa9be_7bfd, 0, 0, 0]), None);
    }
}
