//! Mends what GCC says about the epilogue of functions that realign their stack.
//!
//! Such a function reaches its caller's frame through a pointer (DRAP), keeps `rbp` for itself and describes the saved
//! registers by expressions on `rbp`. The last instructions, `pop %rbp; lea -8(%r10),%rsp; ret`, have rows that still
//! say so although `rbp` is the caller's again (seen in GCC 12; the other registers are popped before it). Whoever
//! believes the row takes a wrong `rbp` to the caller. The truth is on the stack: the prologue pushed a copy of the
//! return address just above the saved `rbp`, a little below the CFA.

use super::{RBP, RSP, Registers};
use crate::address::Avma;
use crate::memory::Memory;
use crate::row::{CfaRule, RegisterRule, Row};

/// `DW_OP_breg6`: relative to `rbp`.
const BREG_RBP: u8 = 0x76;
/// The DRAP register of GCC where it can choose.
const R10: u16 = 10;

/// Whether the row claims that `rbp` is saved where `rbp` points, and is wrong: all registers have been restored.
pub(super) fn has_restored<M: Memory>(
    row: &Row,
    text: &[u8],
    cfa: u64,
    registers: &Registers,
    memory: &mut M,
) -> bool {
    let RegisterRule::Expression(saved) = row.register(RBP) else { return false };
    let through = matches!(row.cfa, CfaRule::Register { register: RSP | R10, .. });
    if !through || saved.bytes(text) != [BREG_RBP, 0] {
        return false;
    }
    let Some(rbp) = registers.get(RBP) else { return false };
    let mut read = |at: u64| memory.read_u64(Avma(at)).ok();
    let copy_is_there = rbp < cfa && read(rbp.wrapping_add(8)) == read(cfa.wrapping_sub(8));
    !copy_is_there
}

/// Whether a rule is relative to `rbp`.
pub(super) fn is_on_rbp(rule: RegisterRule, text: &[u8]) -> bool {
    matches!(rule, RegisterRule::Expression(e) if e.bytes(text).first() == Some(&BREG_RBP))
}
