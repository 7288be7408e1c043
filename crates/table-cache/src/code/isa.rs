//! Instructions of any supported architecture.

use plumb_unwind::Isa;

use super::effect::{After, State};
use super::exit::Exit;
use super::flow::Flow;
use super::{aarch64, x86_64};

/// A decoder of code.
pub(super) enum Decoder<'t> {
    X86_64(Box<x86_64::Decoder<'t>>),
    Aarch64(&'t [u8]),
}

/// An instruction.
#[derive(Clone, Copy)]
pub(super) enum Instruction {
    X86_64(x86_64::Instruction),
    Aarch64(aarch64::Instruction),
}

impl<'t> Decoder<'t> {
    pub(super) fn new(isa: Isa, bytes: &'t [u8]) -> Self {
        match isa {
            Isa::X86_64 => Decoder::X86_64(Box::new(x86_64::Decoder::new(bytes))),
            Isa::Aarch64 | Isa::Arm => Decoder::Aarch64(bytes),
        }
    }

    /// Decodes the instruction at this offset, whose address is `at`. `None` if there is none.
    pub(super) fn decode(&mut self, offset: usize, at: u64) -> Option<Instruction> {
        match self {
            Decoder::X86_64(decoder) => decoder.decode(offset, at).map(Instruction::X86_64),
            Decoder::Aarch64(bytes) => aarch64::decode(bytes, offset, at).map(Instruction::Aarch64),
        }
    }

    /// Returns the state after an instruction that continues with the next one.
    pub(super) fn after(&mut self, instruction: &Instruction, state: State) -> After {
        match (self, instruction) {
            (Decoder::X86_64(decoder), Instruction::X86_64(instruction)) => decoder.after(instruction, state),
            (_, Instruction::Aarch64(instruction)) => instruction.after(state),
            (Decoder::Aarch64(_), Instruction::X86_64(_)) => After::Unknown,
        }
    }
}

impl Instruction {
    /// Address of the first byte.
    pub(super) fn address(&self) -> u64 {
        match self {
            Instruction::X86_64(instruction) => instruction.address(),
            Instruction::Aarch64(instruction) => instruction.address(),
        }
    }

    /// Address of the next instruction.
    pub(super) fn next(&self) -> u64 {
        self.address().wrapping_add(self.length() as u64)
    }

    /// Length in bytes.
    pub(super) fn length(&self) -> usize {
        match self {
            Instruction::X86_64(instruction) => instruction.length(),
            Instruction::Aarch64(_) => aarch64::LENGTH,
        }
    }

    /// Returns whether the instruction is padding.
    pub(super) fn is_padding(&self) -> bool {
        match self {
            Instruction::X86_64(instruction) => instruction.is_padding(),
            Instruction::Aarch64(instruction) => instruction.is_padding(),
        }
    }

    /// Returns the way on from the instruction.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Instruction::X86_64(instruction) => instruction.exit(),
            Instruction::Aarch64(instruction) => instruction.exit(),
        }
    }
}

/// If `first` begins a loop that allocates memory of the stack, returns the address after the loop, and the number of bytes that it allocates.
pub(super) fn behind(flow: &mut Flow<'_>, first: &Instruction) -> Option<(u64, i32)> {
    match first {
        Instruction::X86_64(first) => x86_64::behind(first, |at| match flow.instruction(at)? {
            Instruction::X86_64(instruction) => Some(instruction),
            Instruction::Aarch64(_) => None,
        }),
        Instruction::Aarch64(_) => None,
    }
}
