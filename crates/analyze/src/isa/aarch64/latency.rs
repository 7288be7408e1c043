//! Latencies of instructions, roughly those that Arm's processors of the last years share (Arm Neoverse N1, N2 and V1 Software Optimization
//! Guides, chapter 3).

use disarm64::Insn;
use disarm64_defn::InsnClass;

use super::class;
use super::instruction::MachineInstruction;
use crate::annotate::InstructionKind;
use crate::isa::model::{Decode, LOAD};

/// Returns the cycles from an instruction's inputs to its result.
pub(super) fn latency(one: &MachineInstruction, kind: InstructionKind) -> f64 {
    let Some(definition) = one.definition else { return 1.0 };
    let loads = one.access().is_some_and(|access| access.loads);
    let work = match kind {
        InstructionKind::Division | InstructionKind::SquareRoot => 12.0,
        InstructionKind::Lock => 10.0,
        InstructionKind::Fence => 20.0,
        InstructionKind::Gather => 12.0,
        _ if loads => 0.0,
        _ if class::is_move(one) => 0.0,
        _ => of_arithmetic(one, definition),
    };
    if loads { work + LOAD } else { work }
}

fn of_arithmetic(one: &MachineInstruction, definition: &Insn) -> f64 {
    let name = definition.mnemonic;
    let is_shifted = one.word.bits(10, 6) != 0;
    match definition.class {
        InsnClass::DP_3SRC => 2.5,
        InsnClass::ADDSUB_EXT => 2.0,
        InsnClass::ADDSUB_SHIFT | InsnClass::LOG_SHIFT if is_shifted => 1.5,
        InsnClass::ADDSUB_IMM
        | InsnClass::ADDSUB_SHIFT
        | InsnClass::ADDSUB_CARRY
        | InsnClass::LOG_IMM
        | InsnClass::LOG_SHIFT
        | InsnClass::BITFIELD
        | InsnClass::EXTRACT
        | InsnClass::CONDSEL
        | InsnClass::DP_1SRC
        | InsnClass::DP_2SRC => 1.0,
        // Between general and vector registers, and conversions.
        InsnClass::FLOAT2INT | InsnClass::FLOAT2FIX => 3.5,
        InsnClass::FLOATDP3 => 4.0,
        _ if one.is_float_arithmetic() && name.starts_with("fm") => 3.5,
        _ if one.is_float_arithmetic() => 2.0,
        _ if name.contains("mul") || name.contains("mla") || name.contains("mls") || name.contains("dot") => {
            3.5
        }
        _ if name.contains("cvt") => 3.5,
        _ if one.word.is_vector() => 2.0,
        _ => 1.0,
    }
}
