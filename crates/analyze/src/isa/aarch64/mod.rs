//! A64, the instructions of 64-bit Arm processors: told apart and their operands found by disarm64, whose tables are those of GNU binutils.
//!
//! The crate has no aliases, classes or addresses; they follow here from the encoding, as the Arm Architecture Reference Manual (DDI 0487)
//! defines it. Each instruction is one little-endian word, also where data is big-endian (DDI 0487, B2.6.2).

mod access;
mod accumulate;
mod alias;
mod alias_bits;
mod alias_system;
mod alias_vector;
mod class;
mod corrected;
mod emulate;
mod flow;
mod instruction;
mod known;
mod latency;
mod operands;
mod operation;
mod registers;
mod scalable;
mod scalable_address;
mod scalable_alias;
#[cfg(test)]
mod tests;
mod text;
mod word;
mod write;

use disarm64::{InsnOpcode, decoder};
use plumb_profile::Address;

use super::model::{Decode, MemoryOperand, Operation, Register};
use crate::annotate::InstructionKind;
use instruction::Known;
use word::Word;

pub(crate) use class::Classes;
pub(crate) use emulate::Values;
pub(crate) use instruction::MachineInstruction;
pub(crate) use operands::operands;
pub(super) use registers::CONVENTION;
pub(crate) use text::Writer;

/// Bytes of an instruction.
const SIZE: usize = 4;

/// Decodes code at an address. Bytes after the last whole word are one invalid instruction.
pub(crate) fn decode(start: Address, bytes: &[u8]) -> Vec<MachineInstruction> {
    let one = |(index, bytes): (usize, &[u8])| {
        let word = bytes.first_chunk::<SIZE>().map(|word| u32::from_le_bytes(*word));
        MachineInstruction {
            address: start.0.wrapping_add((index * SIZE) as u64),
            word: Word(word.unwrap_or(0)),
            length: bytes.len() as u8,
            definition: word.and_then(decoder::decode).map(|opcode| opcode.definition()),
            known: Known::default(),
        }
    };
    let mut decoded: Vec<MachineInstruction> = bytes.chunks(SIZE).enumerate().map(one).collect();
    known::find(&mut decoded);
    decoded
}

impl Decode for MachineInstruction {
    fn address(&self) -> Address {
        Address(self.address)
    }

    fn length(&self) -> u8 {
        self.length
    }

    /// Target of a direct branch; otherwise the fixed address that it computes or accesses, also with an `adrp` before it.
    fn target(&self) -> Option<Address> {
        let definition = self.definition?;
        let fixed = || self.known.address.or_else(|| self.access()?.fixed);
        flow::target(self.word, definition, self.address).or_else(fixed).map(Address)
    }

    fn is_invalid(&self) -> bool {
        self.definition.is_none()
    }

    /// `udf`, `brk`, `hlt`, or invalid bits: what compilers end code with that is not reached.
    fn always_faults(&self) -> bool {
        self.definition.is_none() || matches!(self.mnemonic(), "udf" | "brk" | "hlt")
    }

    fn operation(&self) -> Operation {
        operation::operation(self)
    }

    /// Additions and multiplications, also of vectors.
    fn is_float_arithmetic(&self) -> bool {
        let work = ["fadd", "fsub", "fmul", "fmadd", "fmsub", "fnmadd", "fnmsub", "fnmul", "fmla", "fmls"];
        work.iter().any(|one| self.mnemonic().starts_with(one))
    }

    /// `add x0, x0, #8`, `ldr x1, [x0], #8`.
    fn increment(&self, register: Register) -> Option<i64> {
        operation::increment(self, register)
    }

    fn memory(&self) -> Option<MemoryOperand> {
        let access = self.access()?;
        Some(MemoryOperand {
            base: access.base.map(registers::general),
            index: access.index,
            scale: access.scale,
            displacement: access.fixed.unwrap_or(access.displacement.cast_unsigned()),
            bytes: access.bytes,
            is_scattered: access.is_scattered,
        })
    }

    fn names(&self, registers: &[Register]) -> bool {
        let operands = operands::of_encoding(self);
        operands.reads.iter().chain(&operands.writes).any(|register| registers.contains(register))
    }

    fn latency(&self, kind: InstructionKind) -> f64 {
        latency::latency(self, kind)
    }
}
