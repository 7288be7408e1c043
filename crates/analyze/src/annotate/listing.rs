//! The instructions of a function: decoded, classified, with their control flow. Independent of samples.

use std::collections::{BTreeMap, BTreeSet};

use plumb_profile::{Address, InstructionSet};

use super::class::{Class, Kind};
use crate::isa::{MachineInstruction, Operation, Writer, classes, decode};

/// Largest number of code bytes decoded per function. The largest functions in practice, generated interpreters and parsers, have a few hundred
/// thousand.
pub const MAX_CODE: usize = 8 << 20;

/// A function's instructions in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Listing {
    /// First address.
    pub start: Address,
    /// One past the last byte.
    pub end: Address,
    set: InstructionSet,
    instructions: Vec<Instruction>,
    decoded: Vec<MachineInstruction>,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Address of its first byte.
    pub address: Address,
    /// Length in bytes.
    pub length: u8,
    /// Class of the instruction.
    pub class: Class,
    /// Number of its basic block: a run of instructions entered only at its first and left only after its last. Calls do not end a block.
    pub block: usize,
    /// Target of a direct jump or call; otherwise the fixed address of its memory operand.
    pub target: Option<Address>,
}

impl Instruction {
    /// Returns the address after its last byte.
    pub fn end(&self) -> Address {
        Address(self.address.0.wrapping_add(u64::from(self.length)))
    }
}

impl Listing {
    /// Decodes code at address `start`. Bits that are not an instruction become `(bad)`: of x86 one byte each, of aarch64 one word. Code beyond
    /// [`MAX_CODE`] is left out.
    pub fn decode(start: Address, bytes: &[u8], set: InstructionSet) -> Listing {
        let bytes = &bytes[..bytes.len().min(MAX_CODE)];
        let decoded = decode(start, bytes, set);
        let mut instructions: Vec<Instruction> = decoded
            .iter()
            .zip(classes(&decoded))
            .map(|(instruction, class)| Instruction {
                address: instruction.address(),
                length: instruction.length(),
                class,
                block: 0,
                target: instruction.target(),
            })
            .collect();
        number_blocks(&mut instructions);
        let end = instructions.last().map_or(start, Instruction::end);
        Listing { start, end, set, instructions, decoded }
    }

    /// Returns the instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Returns the instruction set.
    pub fn set(&self) -> InstructionSet {
        self.set
    }

    /// Returns the decoded instructions.
    pub(crate) fn decoded(&self) -> &[MachineInstruction] {
        &self.decoded
    }

    /// Returns the index of the instruction that contains `address`.
    pub fn index_of(&self, address: Address) -> Option<usize> {
        let after = self.instructions.partition_point(|instruction| instruction.address <= address);
        let index = after.checked_sub(1)?;
        (address < self.instructions[index].end()).then_some(index)
    }

    /// Returns the index of the instruction that starts at `address`.
    pub(super) fn starts(&self, address: Address) -> Option<usize> {
        self.index_of(address).filter(|&index| self.instructions[index].address == address)
    }

    /// Returns the index of a jump's target if it is within the function. Calls do not count as jumps.
    pub fn jump(&self, index: usize) -> Option<usize> {
        let instruction = &self.instructions[index];
        let jumps = matches!(instruction.class.kind, Kind::Branch | Kind::Jump);
        instruction.target.filter(|_| jumps).and_then(|target| self.starts(target))
    }

    /// Returns the addresses outside of the function that its instructions refer to, code and data, each once.
    pub fn targets(&self) -> Vec<Address> {
        let inside = self.start..self.end;
        let targets = self.instructions.iter().filter_map(|instruction| instruction.target);
        let outside: BTreeSet<Address> = targets.filter(|target| !inside.contains(target)).collect();
        outside.into_iter().collect()
    }

    /// Returns all instructions as text, in GNU syntax (of x86: AT&T). `names` replace addresses.
    pub fn texts(&self, names: &BTreeMap<Address, String>) -> Vec<String> {
        let mut writer = Writer::new(names);
        self.decoded.iter().map(|instruction| writer.text(instruction)).collect()
    }

    /// Whether an instruction only compares two operands.
    pub(super) fn is_compare(&self, index: usize) -> bool {
        self.decoded[index].operation() == Operation::Compare
    }

    /// Whether execution cannot continue after an instruction.
    pub(super) fn always_faults(&self, index: usize) -> bool {
        self.decoded[index].always_faults()
    }
}

/// Numbers the basic blocks from 0.
fn number_blocks(instructions: &mut [Instruction]) {
    let is_jump = |class: Class| matches!(class.kind, Kind::Branch | Kind::Jump);
    let targets: BTreeSet<Address> =
        instructions.iter().filter(|i| is_jump(i.class)).filter_map(|i| i.target).collect();
    let (mut block, mut ended) = (0, false);
    for (index, instruction) in instructions.iter_mut().enumerate() {
        if index > 0 && (ended || targets.contains(&instruction.address)) {
            block += 1;
        }
        instruction.block = block;
        ended = instruction.class.ends_block();
    }
}
