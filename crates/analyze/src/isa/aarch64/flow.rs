//! Control flow: what an instruction does to the program counter.

use disarm64::Insn;
use disarm64_defn::{InsnClass, InsnOperandKind};

use super::word::Word;
use crate::annotate::InstructionKind;

/// Condition codes from here on mean *always*.
const ALWAYS: u32 = 14;

/// Returns the target of a direct branch.
pub(super) fn target(word: Word, definition: &Insn, address: u64) -> Option<u64> {
    let offset = definition.operands.iter().find_map(|operand| match operand.kind {
        InsnOperandKind::ADDR_PCREL26 => Some(word.signed(0, 26)),
        InsnOperandKind::ADDR_PCREL19 if definition.class != InsnClass::LOADLIT => Some(word.signed(5, 19)),
        InsnOperandKind::ADDR_PCREL14 => Some(word.signed(5, 14)),
        InsnOperandKind::ADDR_PCREL9 => Some(word.signed(5, 9)),
        _ => None,
    })?;
    Some(address.wrapping_add_signed(offset * 4))
}

/// Returns the kind of a branch, a call, a return or an exception to a higher level.
pub(super) fn kind(word: Word, definition: &Insn) -> Option<InstructionKind> {
    let name = definition.mnemonic;
    Some(match definition.class {
        InsnClass::BRANCH_IMM if name == "bl" => InstructionKind::Call,
        InsnClass::BRANCH_IMM => InstructionKind::Jump,
        InsnClass::BRANCH_REG if name.starts_with("blr") => InstructionKind::IndirectCall,
        InsnClass::BRANCH_REG if name.starts_with("br") => InstructionKind::IndirectJump,
        InsnClass::BRANCH_REG => InstructionKind::Return,
        InsnClass::CONDBRANCH if word.bits(0, 4) >= ALWAYS => InstructionKind::Jump,
        InsnClass::CONDBRANCH | InsnClass::COMPBRANCH | InsnClass::TESTBRANCH => InstructionKind::Branch,
        InsnClass::EXCEPTION if matches!(name, "svc" | "hvc" | "smc") => InstructionKind::SystemCall,
        _ => return None,
    })
}
