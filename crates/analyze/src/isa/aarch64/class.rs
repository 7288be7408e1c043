//! Classes of instructions.

use disarm64::{Insn, InsnOperand};
use disarm64_defn::{
    InsnClass, InsnOperandClass, InsnOperandKind as Kind, InsnOperandQualifier as Qualifier,
};

use super::access::{self, Access, WriteBack};
use super::instruction::MachineInstruction;
use super::registers::CONVENTION;
use super::registers::general;
use super::{flow, operation};
use crate::annotate::{Class, InstructionKind, MemoryPlace, SCALABLE};

/// Computes the classes of a function's instructions.
pub(crate) struct Classes {
    /// Whether x29 points into the frame.
    has_frame_pointer: bool,
}

impl Classes {
    /// Creates the state for a function with these instructions.
    pub fn new<'a>(mut instructions: impl Iterator<Item = &'a MachineInstruction>) -> Self {
        // `mov x29, sp`, `add x29, sp, #16`.
        let sets_frame_pointer = |one: &MachineInstruction| {
            one.definition.is_some_and(|it| it.class == InsnClass::ADDSUB_IMM && it.mnemonic == "add")
                && general(one.word.rd()) == CONVENTION.frame
                && general(one.word.rn()) == CONVENTION.stack
        };
        Self { has_frame_pointer: instructions.any(sets_frame_pointer) }
    }

    /// Returns the class of one of them.
    pub fn of(&self, one: &MachineInstruction) -> Class {
        let plain =
            Class { kind: InstructionKind::Plain, loads: false, stores: false, place: None, vector_bits: 0 };
        let Some(definition) = one.definition else { return plain };
        let access = one.access().filter(|access| access.loads || access.stores);
        Class {
            kind: kind(one, definition, access),
            loads: access.is_some_and(|access| access.loads),
            stores: access.is_some_and(|access| access.stores),
            place: access.and_then(|access| self.place(one, access)),
            vector_bits: vector_bits(one, definition, access),
        }
    }

    fn place(&self, one: &MachineInstruction, access: Access) -> Option<MemoryPlace> {
        let base = access.base.map(general);
        let is_stack = base == Some(CONVENTION.stack);
        if is_stack && saves_registers(one, access) {
            return None;
        }
        let is_frame = is_stack || self.has_frame_pointer && base == Some(CONVENTION.frame);
        Some(match access.index {
            _ if one.known.is_thread_local => MemoryPlace::ThreadLocal,
            _ if is_frame => MemoryPlace::Stack,
            _ if access.fixed.is_some() || one.known.address.is_some() => MemoryPlace::Global,
            Some(_) => MemoryPlace::Indexed,
            None => MemoryPlace::Pointer,
        })
    }
}

/// Whether it is what x86 has `push` and `pop` for: it moves the stack pointer too, or saves the frame pointer and the return address.
fn saves_registers(one: &MachineInstruction, access: Access) -> bool {
    let is_pair = one.definition.is_some_and(|it| it.class == InsnClass::LDSTPAIR_OFF);
    access.write_back != WriteBack::None
        || is_pair && !one.word.is_vector() && (one.word.rd(), one.word.ra()) == (29, 30)
}

fn kind(one: &MachineInstruction, definition: &Insn, access: Option<Access>) -> InstructionKind {
    if let Some(kind) = flow::kind(one.word, definition) {
        return kind;
    }
    let name = definition.mnemonic;
    match definition.class {
        // Exclusive loads and stores, of which atomic operations consist without LSE. Others of the class only order memory.
        InsnClass::LDSTEXCL if name.contains('x') => InstructionKind::Lock,
        InsnClass::LSE_ATOMIC if name.contains("64b") => InstructionKind::Plain,
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::THE => InstructionKind::Lock,
        InsnClass::IC_SYSTEM if is_fence(one, name) => InstructionKind::Fence,
        _ if access::is_memory_copy(definition) => InstructionKind::Repeat,
        _ if access.is_some_and(|access| access.is_scattered) => InstructionKind::Gather,
        // `udiv`, `fdivr` and similar; no other mnemonic contains these letters.
        _ if name.contains("div") => InstructionKind::Division,
        _ if name == "fsqrt" => InstructionKind::SquareRoot,
        _ => InstructionKind::Plain,
    }
}

/// Barriers, and hints that wait: `yield`, `wfe`, `wfi`.
fn is_fence(one: &MachineInstruction, name: &str) -> bool {
    const WAITS: std::ops::RangeInclusive<u32> = 1..=3;
    matches!(name, "dmb" | "dsb" | "isb" | "sb" | "wfet" | "wfit")
        || name == "hint" && WAITS.contains(&one.word.bits(5, 7))
}

/// Width in bits of the widest vector register operand.
fn vector_bits(one: &MachineInstruction, definition: &Insn, access: Option<Access>) -> u16 {
    let classes = || definition.operands.iter().map(|operand| operand.class);
    if classes().any(|class| matches!(class, InsnOperandClass::SVE_REG | InsnOperandClass::SVE_REGLIST)) {
        return SCALABLE;
    }
    if one.word.is_vector() && classes().any(|class| class == InsnOperandClass::FP_REG) && access.is_some() {
        // q registers.
        let registers = if definition.class == InsnClass::LDSTPAIR_OFF
            || definition.class == InsnClass::LDSTPAIR_INDEXED
            || definition.class == InsnClass::LDSTNAPAIR_OFFS
        {
            2
        } else {
            1
        };
        return if access.is_some_and(|access| access.bytes == 16 * registers) { 128 } else { 0 };
    }
    let vectors = definition.operands.iter().filter(|operand| is_vector(operand));
    let width = |operand: &InsnOperand| if one.word.bit(30) || is_always_whole(operand) { 128 } else { 64 };
    vectors.map(width).max().unwrap_or(0)
}

fn is_vector(operand: &InsnOperand) -> bool {
    matches!(operand.class, InsnOperandClass::SIMD_REG | InsnOperandClass::SIMD_REGLIST)
        && operand.kind != Kind::LEt
}

/// Whether an operand has 128 bits whatever bit 30 says: the wide side of an instruction that widens or narrows.
fn is_always_whole(operand: &InsnOperand) -> bool {
    use Qualifier::{V_1Q, V_2D, V_4S, V_8H, V_16B};
    !operand.qualifiers.is_empty()
        && operand.qualifiers.iter().all(|one| matches!(one, V_16B | V_8H | V_4S | V_2D | V_1Q))
}

/// Whether it only moves a value between registers.
pub(super) fn is_move(one: &MachineInstruction) -> bool {
    let is_vector_move = |definition: &Insn| {
        definition.class == InsnClass::ASIMDSAME
            && definition.mnemonic == "orr"
            && one.word.rn() == one.word.rm()
            || definition.mnemonic == "fmov" && definition.class == InsnClass::FLOATDP1
    };
    one.definition.is_some_and(|definition| {
        operation::moved(one.word, definition).is_some()
            || definition.class == InsnClass::MOVEWIDE && definition.mnemonic != "movk"
            || is_vector_move(definition)
    })
}
