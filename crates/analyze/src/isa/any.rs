//! Instructions of any set: each question goes to the module that decoded the instruction.

use std::collections::BTreeMap;
use std::ops::Deref;

use plumb_profile::{Address, InstructionSet, REGISTERS};

use super::model::{Convention, Decode, Operands};
use super::{aarch64, x86_64};
use crate::annotate::Class;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MachineInstruction {
    /// 32 or 64 bits.
    X86(x86_64::MachineInstruction),
    Aarch64(aarch64::MachineInstruction),
}

impl Deref for MachineInstruction {
    type Target = dyn Decode;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::X86(one) => one,
            Self::Aarch64(one) => one,
        }
    }
}

/// Returns the registers that have a role in code of an instruction set.
pub(crate) fn convention(set: InstructionSet) -> &'static Convention {
    match set {
        InstructionSet::X86 | InstructionSet::X86_64 => &x86_64::CONVENTION,
        InstructionSet::Aarch64 => &aarch64::CONVENTION,
    }
}

/// Decodes code at an address. What cannot be decoded is invalid instructions of the smallest size.
pub(crate) fn decode(start: Address, bytes: &[u8], set: InstructionSet) -> Vec<MachineInstruction> {
    let x86 = |bits| x86_64::decode(start, bytes, bits).into_iter().map(MachineInstruction::X86).collect();
    match set {
        InstructionSet::X86 => x86(32),
        InstructionSet::X86_64 => x86(64),
        InstructionSet::Aarch64 => {
            aarch64::decode(start, bytes).into_iter().map(MachineInstruction::Aarch64).collect()
        }
    }
}

/// Returns the classes of a function's instructions.
pub(crate) fn classes(decoded: &[MachineInstruction]) -> Vec<Class> {
    let mut of_x86 = x86_64::Classes::new(decoded.iter().filter_map(MachineInstruction::x86));
    let of_aarch64 = aarch64::Classes::new(decoded.iter().filter_map(MachineInstruction::aarch64));
    let of = |one: &MachineInstruction| match one {
        MachineInstruction::X86(one) => of_x86.of(one),
        MachineInstruction::Aarch64(one) => of_aarch64.of(one),
    };
    decoded.iter().map(of).collect()
}

/// Returns the operands of each instruction of a function, in their order.
pub(crate) fn operands(decoded: &[MachineInstruction]) -> Vec<Operands> {
    let mut of_x86 = x86_64::OperandReader::new();
    let of = |one: &MachineInstruction| match one {
        MachineInstruction::X86(one) => of_x86.of(one),
        MachineInstruction::Aarch64(one) => aarch64::operands(one),
    };
    decoded.iter().map(of).collect()
}

impl MachineInstruction {
    fn x86(&self) -> Option<&x86_64::MachineInstruction> {
        match self {
            Self::X86(one) => Some(one),
            Self::Aarch64(_) => None,
        }
    }

    fn aarch64(&self) -> Option<&aarch64::MachineInstruction> {
        match self {
            Self::Aarch64(one) => Some(one),
            Self::X86(_) => None,
        }
    }
}

/// Formats instructions as GNU tools do.
pub(crate) struct Writer<'n> {
    x86: x86_64::Writer,
    aarch64: aarch64::Writer<'n>,
}

impl<'n> Writer<'n> {
    /// Creates a formatter that prints these names instead of addresses.
    pub fn new(names: &'n BTreeMap<Address, String>) -> Self {
        Self { x86: x86_64::Writer::new(names), aarch64: aarch64::Writer::new(names) }
    }

    /// Formats an instruction.
    pub fn text(&mut self, instruction: &MachineInstruction) -> String {
        match instruction {
            MachineInstruction::X86(one) => self.x86.text(one),
            MachineInstruction::Aarch64(one) => self.aarch64.text(one),
        }
    }
}

/// Register values some instructions after a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    X86(x86_64::Values),
    Aarch64(aarch64::Values),
}

impl Values {
    /// Creates the values of a sample at an instruction, by DWARF number of its instruction set.
    pub fn new(at: &MachineInstruction, values: &[u64; REGISTERS]) -> Self {
        match at {
            MachineInstruction::X86(_) => Self::X86(x86_64::Values::new(values)),
            MachineInstruction::Aarch64(_) => Self::Aarch64(aarch64::Values::new(values)),
        }
    }

    /// Emulates one instruction.
    pub fn step(&mut self, instruction: &MachineInstruction, operands: &Operands) {
        match (self, instruction) {
            (Self::X86(values), MachineInstruction::X86(one)) => values.step(one, operands),
            (Self::Aarch64(values), MachineInstruction::Aarch64(one)) => values.step(one, operands),
            // A function is in one instruction set.
            _ => {}
        }
    }

    /// Returns the address of a memory operand.
    pub fn address(&self, instruction: &MachineInstruction) -> Option<u64> {
        match (self, instruction) {
            (Self::X86(values), MachineInstruction::X86(one)) => values.address(one),
            (Self::Aarch64(values), MachineInstruction::Aarch64(one)) => values.address(one),
            _ => None,
        }
    }
}
