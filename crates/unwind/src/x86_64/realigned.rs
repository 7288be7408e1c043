//! Corrects GCC's call-frame information for the epilogue of functions that realign their stack.
//!
//! Such a function reaches its caller's frame through a pointer (DRAP), uses `rbp` itself and describes the saved
//! registers by expressions on `rbp`. The rows of its last instructions, `pop %rbp; lea -8(%r10),%rsp; ret`, still
//! use these expressions although `rbp` is the caller's again (seen in GCC 12; the other registers are popped before
//! it). Applying such a row gives the caller a wrong `rbp`. The stack shows the difference: the prologue pushed a
//! copy of the return address just above the saved `rbp`, a little below the CFA.

use super::{RBP, RSP, Registers};
use crate::address::Avma;
use crate::memory::Memory;
use crate::row::{CfaRule, RegisterRule, Row};

/// `DW_OP_breg6`: relative to `rbp`.
const BREG_RBP: u8 = 0x76;
/// The DRAP register that GCC prefers.
const R10: u16 = 10;

/// Returns whether the row states that `rbp` is saved where `rbp` points, and is wrong because all registers have
/// been restored.
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

/// Returns whether a rule is relative to `rbp`.
pub(super) fn is_on_rbp(rule: RegisterRule, text: &[u8]) -> bool {
    matches!(rule, RegisterRule::Expression(e) if e.bytes(text).first() == Some(&BREG_RBP))
}
