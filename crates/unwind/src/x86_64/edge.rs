//! The instructions at which a function with a frame pointer has no frame: `push %rbp; mov %rsp,%rbp` at its begin, `ret`, and what
//! leads to either without a change of the stack, as a jump to the begin of a function after the frame was left does.
//!
//! Of code without rules (Intel SDM volume 2, opcodes). What comes at the program counter is an instruction, so nothing
//! is guessed but that a push of `rbp` which is followed by that move is the first of its function.

use crate::address::Avma;
use crate::architecture::Edge;
use crate::memory::Memory;

const PUSH_RBP: u8 = 0x55;

/// Whether code begins with `mov %rsp,%rbp`, in either encoding.
fn is_move(code: &[u8]) -> bool {
    matches!(code, [0x48, 0x89, 0xe5, ..] | [0x48, 0x8b, 0xec, ..])
}

/// Whether code begins with a return: `ret`, `ret $n`, each with the prefixes that are in use.
fn is_return(code: &[u8]) -> bool {
    matches!(code, [0xc2 | 0xc3, ..] | [0xf2 | 0xf3, 0xc2 | 0xc3, ..])
}

/// Page of the kernel's oldest system calls (arch/x86/include/uapi/asm/vsyscall.h): the kernel itself returns from them, with the return address
/// on top of the stack.
const VSYSCALL_PAGE: u64 = 0xffff_ffff_ff60_0000 >> 12;

/// Most instructions between `leave` and the end of a function: those of Erlang's runtime count reductions there.
const MOST: usize = 4;

/// Returns the state of the frame as shown by the next instructions at `pc`. `None`: neither state, or the code can't be read.
pub(super) fn at<M: Memory>(pc: Avma, memory: &mut M) -> Option<Edge> {
    if pc.0 >> 12 == VSYSCALL_PAGE {
        return Some(Edge::Bare);
    }
    let mut at = pc;
    for _ in 0..=MOST {
        let (code, length) = read(at, memory)?;
        let code = &code[..length];
        // endbr64, vzeroupper
        let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
        match rest {
            [PUSH_RBP, rest @ ..] if is_move(rest) => return Some(Edge::Bare),
            _ if is_return(code.strip_prefix(&[0xc5, 0xf8, 0x77]).unwrap_or(code)) => {
                return Some(Edge::Bare);
            }
            _ if at == pc && is_move(code) => {
                let mut before = [0];
                let is_pushed = memory.read_code(pc.offset(-1), &mut before) && before == [PUSH_RBP];
                return is_pushed.then_some(Edge::Pushed);
            }
            _ => at = at.offset(to_next(code)?),
        }
    }
    None
}

/// The bytes at an address, as many as there are.
fn read<M: Memory>(at: Avma, memory: &mut M) -> Option<([u8; 8], usize)> {
    let mut code = [0; 8];
    // The last function of a mapping may end with its `ret`.
    let length = (1..=8).rev().find(|&length| memory.read_code(at, &mut code[..length]))?;
    Some((code, length))
}

/// Returns the distance from an instruction that changes neither the stack nor its registers to the next one. Conditional branches are assumed
/// not to be taken, as the frame is the same on both paths.
fn to_next(code: &[u8]) -> Option<i64> {
    match *code {
        // dec of a register
        [0x48 | 0x49, 0xff, 0xc8..=0xcb | 0xce | 0xcf, ..] => Some(3),
        // jcc
        [0x70..=0x7f, _, ..] => Some(2),
        [0x0f, 0x80..=0x8f, _, _, _, _, ..] => Some(6),
        // jmp
        [0xeb, to, ..] => Some(2 + i64::from(to.cast_signed())),
        [0xe9, a, b, c, d, ..] => Some(5 + i64::from(i32::from_le_bytes([a, b, c, d]))),
        _ => None,
    }
}
