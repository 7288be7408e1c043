//! Latencies of instructions, roughly those that processors of the last ten years share (Agner Fog, Instruction tables; uops.info).

use iced_x86::{Mnemonic, OpKind};

use super::{MachineInstruction, name_of};
use crate::annotate::InstructionKind;
use crate::isa::model::LOAD;

/// Returns the cycles from an instruction's inputs to its result.
pub(super) fn latency(instruction: &MachineInstruction, kind: InstructionKind) -> f64 {
    let name = name_of(instruction.0.mnemonic());
    let instruction = &instruction.0;
    let has_load = instruction.op_count() > 1
        && (1..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let is_vector = instruction.op_kinds().zip(0..).any(|(kind, operand)| {
        kind == OpKind::Register && instruction.op_register(operand).is_vector_register()
    });
    let work = match kind {
        InstructionKind::Division | InstructionKind::SquareRoot => 13.0,
        InstructionKind::Lock => 18.0,
        InstructionKind::Fence => 20.0,
        InstructionKind::Gather => 12.0,
        _ if name.starts_with("cvt") || name.starts_with("vcvt") => 5.0,
        _ if name.contains("mul") || name.starts_with("vfm") || name.starts_with("vfnm") => 3.5,
        _ if is_vector
            && (name.contains("add") || name.contains("sub"))
            && !name.contains("padd")
            && !name.contains("psub") =>
        {
            3.5
        }
        _ if is_mov(instruction.mnemonic()) => 0.0,
        _ => 1.0,
    };
    if has_load { work + LOAD } else { work.max(if is_mov(instruction.mnemonic()) { 0.0 } else { 1.0 }) }
}

/// Whether it is a move; register moves have no latency, because registers are renamed.
fn is_mov(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Mov
            | Mnemonic::Movaps
            | Mnemonic::Movapd
            | Mnemonic::Movups
            | Mnemonic::Movupd
            | Mnemonic::Movdqa
            | Mnemonic::Movdqu
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovups
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovdqa
            | Mnemonic::Vmovdqu
            | Mnemonic::Movsd
            | Mnemonic::Movss
            | Mnemonic::Vmovsd
            | Mnemonic::Vmovss
    )
}
