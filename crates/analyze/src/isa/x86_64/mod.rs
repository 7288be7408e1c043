//! x86: instructions decoded by iced.

mod class;
mod emulate;
mod latency;
mod operands;
mod text;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind};
use plumb_profile::Address;

use super::model::{Convention, Decode, MemoryOperand, Operation, Register};
use crate::annotate::InstructionKind;

pub(crate) use class::Classes;
pub(crate) use emulate::Values;
pub(crate) use operands::OperandReader;
pub(crate) use text::Writer;

/// rsp and rbp (System V ABI for x86-64, figure 3.36); r12 to r15: gcc uses rbx without optimizing too.
pub(super) const CONVENTION: Convention = Convention {
    stack: Register::General(7),
    frame: Register::General(6),
    kept: &[Register::General(12), Register::General(13), Register::General(14), Register::General(15)],
};

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineInstruction(iced_x86::Instruction);

/// Decodes code at an address; `bits` is 64 or 32. Invalid bytes are instructions of one byte.
pub(crate) fn decode(start: Address, bytes: &[u8], bits: u32) -> Vec<MachineInstruction> {
    let bits = if bits == 32 { 32 } else { 64 };
    let mut decoder = Decoder::with_ip(bits, bytes, start.0, DecoderOptions::NONE);
    let mut decoded = Vec::new();
    while decoder.can_decode() {
        let (position, ip) = (decoder.position(), decoder.ip());
        let mut instruction = decoder.decode();
        // Decoding resumes at the byte after an invalid one.
        if instruction.is_invalid() && decoder.set_position(position + 1).is_ok() {
            decoder.set_ip(ip.wrapping_add(1));
            instruction.set_len(1);
            instruction.set_next_ip(ip.wrapping_add(1));
        }
        decoded.push(MachineInstruction(instruction));
    }
    decoded
}

/// The register that a part belongs to; `None` for no register.
fn whole(register: iced_x86::Register) -> Option<Register> {
    /// DWARF numbers in the order in which instructions encode registers: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    const GENERAL: [u8; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    let full = register.full_register();
    match GENERAL.get(full.number()) {
        Some(&number) if full.is_gpr64() => Some(Register::General(number)),
        _ => (full != iced_x86::Register::None).then_some(Register::Other(full as u16)),
    }
}

/// Name of a mnemonic, in lower case.
fn name_of(mnemonic: Mnemonic) -> String {
    format!("{mnemonic:?}").to_lowercase()
}

impl MachineInstruction {
    fn has_memory(&self) -> bool {
        self.0.op_kinds().any(|kind| kind == OpKind::Memory)
    }
}

impl Decode for MachineInstruction {
    fn address(&self) -> Address {
        Address(self.0.ip())
    }

    fn length(&self) -> u8 {
        self.0.len() as u8
    }

    fn target(&self) -> Option<Address> {
        let is_near =
            |kind| matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
        if self.0.op_count() > 0 && is_near(self.0.op0_kind()) {
            return Some(Address(self.0.near_branch_target()));
        }
        (self.has_memory() && self.0.is_ip_rel_memory_operand())
            .then(|| Address(self.0.ip_rel_memory_address()))
    }

    fn is_invalid(&self) -> bool {
        self.0.code() == Code::INVALID
    }

    /// `ud2`, or invalid bytes.
    fn always_faults(&self) -> bool {
        self.0.flow_control() == FlowControl::Exception
    }

    fn operation(&self) -> Operation {
        if self.0.is_call_near() || self.0.is_call_near_indirect() {
            return Operation::Call;
        }
        match self.0.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Movzx | Mnemonic::Cdqe => {
                Operation::Move
            }
            Mnemonic::Add => Operation::Add,
            Mnemonic::Sub => Operation::Subtract,
            Mnemonic::Lea => Operation::Address,
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Imul => Operation::Multiply,
            Mnemonic::Cmp | Mnemonic::Test => Operation::Compare,
            Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Bts => Operation::Exchange,
            _ => Operation::Other,
        }
    }

    fn is_float_arithmetic(&self) -> bool {
        let name = name_of(self.0.mnemonic());
        let work = name.strip_prefix('v').unwrap_or(&name);
        let is_work = ["add", "sub", "mul", "fmadd", "fmsub", "fnmadd", "fnmsub"]
            .iter()
            .any(|one| work.starts_with(one));
        is_work && ["ss", "sd", "ps", "pd"].iter().any(|end| work.ends_with(end))
    }

    /// `add r, 8`, `inc r`, `lea r, [r+8]`.
    fn increment(&self, register: Register) -> Option<i64> {
        let one = &self.0;
        let is_target = one.op_count() > 0
            && one.op0_kind() == OpKind::Register
            && whole(one.op0_register()) == Some(register);
        let number = || {
            let is_number =
                one.op_count() == 2 && !matches!(one.op1_kind(), OpKind::Register | OpKind::Memory);
            is_number.then(|| one.try_immediate(1).ok().map(u64::cast_signed)).flatten()
        };
        match one.mnemonic() {
            _ if !is_target => None,
            Mnemonic::Inc => Some(1),
            Mnemonic::Dec => Some(-1),
            Mnemonic::Add => number(),
            Mnemonic::Sub => number().map(i64::wrapping_neg),
            Mnemonic::Lea => {
                let memory = self.memory()?;
                let is_same = memory.base == Some(register) && memory.index.is_none();
                is_same.then_some(memory.displacement.cast_signed())
            }
            _ => None,
        }
    }

    fn memory(&self) -> Option<MemoryOperand> {
        let one = &self.0;
        let is_relative = one.is_ip_rel_memory_operand();
        self.has_memory().then(|| MemoryOperand {
            base: whole(one.memory_base()).filter(|_| !is_relative),
            index: whole(one.memory_index()),
            scale: one.memory_index_scale(),
            displacement: one.memory_displacement64(),
            bytes: one.memory_size().size() as u64,
            is_scattered: one.is_vsib(),
        })
    }

    fn names(&self, registers: &[Register]) -> bool {
        let one = &self.0;
        let operands = (0..one.op_count()).map(|operand| one.op_register(operand));
        let mut named = operands.chain([one.memory_base(), one.memory_index()]).filter_map(whole);
        named.any(|register| registers.contains(&register))
    }

    fn latency(&self, kind: InstructionKind) -> f64 {
        latency::latency(self, kind)
    }
}
