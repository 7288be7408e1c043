//! The instructions at which a function with a frame pointer has no frame: `push %rbp; mov %rsp,%rbp` at its begin, and
//! `ret`.
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

/// What the code at `pc` is about to do. `None`: something else, or it can't be read.
pub(super) fn at<M: Memory>(pc: Avma, memory: &mut M) -> Option<Edge> {
    let mut code = [0; 8];
    // The last function of a mapping may end with its `ret`.
    let length = [8, 4, 3, 2, 1].into_iter().find(|&length| memory.read_code(pc, &mut code[..length]))?;
    let code = &code[..length];
    // endbr64, vzeroupper
    let rest = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    match rest {
        [PUSH_RBP, rest @ ..] if is_move(rest) => Some(Edge::Bare),
        _ if is_return(code.strip_prefix(&[0xc5, 0xf8, 0x77]).unwrap_or(code)) => Some(Edge::Bare),
        _ if is_move(code) => {
            let mut before = [0];
            let is_pushed = memory.read_code(pc.offset(-1), &mut before) && before == [PUSH_RBP];
            is_pushed.then_some(Edge::Pushed)
        }
        _ => None,
    }
}
