//! Operations that the analyses tell apart.

use disarm64::Insn;
use disarm64_defn::InsnClass;

use super::access::WriteBack;
use super::flow;
use super::instruction::MachineInstruction;
use super::registers::general;
use super::word::{Word, ZERO};
use crate::annotate::InstructionKind;
use crate::isa::model::{Operation, Register};

/// Returns the operation of an instruction.
pub(super) fn operation(one: &MachineInstruction) -> Operation {
    let Some(definition) = one.definition else { return Operation::Other };
    let (word, name) = (one.word, definition.mnemonic);
    let discards = word.rd() == ZERO;
    match definition.class {
        _ if is_call(word, definition) => Operation::Call,
        _ if moved(word, definition).is_some() => Operation::Move,
        InsnClass::MOVEWIDE => Operation::Move,
        InsnClass::LOG_IMM if name == "orr" && word.rn() == ZERO => Operation::Move,
        InsnClass::LOG_IMM | InsnClass::LOG_SHIFT if name == "ands" && discards => Operation::Compare,
        InsnClass::ADDSUB_IMM | InsnClass::ADDSUB_EXT | InsnClass::ADDSUB_SHIFT => match name {
            "adds" | "subs" if discards => Operation::Compare,
            "add" | "adds" => Operation::Add,
            _ => Operation::Subtract,
        },
        InsnClass::PCRELADDR => Operation::Address,
        InsnClass::BITFIELD => of_bitfield(word, definition),
        InsnClass::DP_2SRC if name == "lslv" => Operation::Multiply,
        InsnClass::DP_3SRC if matches!(name, "madd" | "smaddl" | "umaddl") => Operation::Multiply,
        InsnClass::LDST_POS
        | InsnClass::LDST_REGOFF
        | InsnClass::LDST_UNSCALED
        | InsnClass::LDST_IMM9
        | InsnClass::LDSTPAIR_OFF
        | InsnClass::LDSTPAIR_INDEXED
        | InsnClass::LOADLIT
            if !word.is_vector() =>
        {
            Operation::Move
        }
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC
            if name.starts_with("swp") || name.starts_with("cas") =>
        {
            Operation::Exchange
        }
        // A store that ends a pair of exclusive instructions exchanges, unless the stored value was computed from the loaded one.
        InsnClass::LDSTEXCL if name.starts_with("st") && name.contains('x') && !one.known.is_computed => {
            Operation::Exchange
        }
        _ => Operation::Other,
    }
}

fn is_call(word: Word, definition: &Insn) -> bool {
    matches!(flow::kind(word, definition), Some(InstructionKind::Call | InstructionKind::IndirectCall))
}

/// Returns source and target of a move between general registers (the aliases `mov (register)` and `mov (to/from SP)`).
pub(super) fn moved(word: Word, definition: &Insn) -> Option<(u8, u8)> {
    let is_plain = word.bits(10, 6) == 0 && word.bits(22, 2) == 0;
    match (definition.class, definition.mnemonic) {
        (InsnClass::LOG_SHIFT, "orr") if word.rn() == ZERO && is_plain => Some((word.rm(), word.rd())),
        (InsnClass::ADDSUB_IMM, "add")
            if word.bits(10, 13) == 0 && (word.rn() == ZERO || word.rd() == ZERO) =>
        {
            Some((word.rn(), word.rd()))
        }
        _ => None,
    }
}

/// Extensions are moves, shifts to the left multiplications.
fn of_bitfield(word: Word, definition: &Insn) -> Operation {
    let (rotation, last) = (word.bits(16, 6), word.bits(10, 6));
    match definition.mnemonic {
        "bfm" => Operation::Other,
        _ if rotation == 0 && matches!(last, 7 | 15 | 31) => Operation::Move,
        _ if last < rotation => Operation::Multiply,
        _ => Operation::Other,
    }
}

/// Returns the constant that an instruction adds to a register, if nothing else changes it.
pub(super) fn increment(one: &MachineInstruction, register: Register) -> Option<i64> {
    let definition = one.definition?;
    if let Some(access) = one.access() {
        let is_base = access.base.map(general) == Some(register);
        return match access.write_back {
            WriteBack::By(amount) if is_base => Some(amount),
            _ => None,
        };
    }
    let word = one.word;
    let is_same =
        definition.class == InsnClass::ADDSUB_IMM && word.rd() == word.rn() && general(word.rd()) == register;
    if !is_same || operation(one) == Operation::Compare {
        return None;
    }
    let amount = immediate(word);
    Some(if definition.mnemonic.starts_with("add") { amount } else { -amount })
}

/// Returns the immediate of an addition or a subtraction.
pub(super) fn immediate(word: Word) -> i64 {
    i64::from(word.bits(10, 12)) << if word.bit(22) { 12 } else { 0 }
}
