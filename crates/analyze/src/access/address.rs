//! Data addresses, computed from the user registers of a sample.

use plumb_profile::RegisterSample;

use crate::annotate::{InstructionKind, Listing, MemoryPlace};
use crate::isa::{MachineInstruction, Operands, Register, Values};

/// Instructions searched before and after the sampled one.
const BEFORE: usize = 5;
const AFTER: usize = 32;

/// Finds the addresses of memory operands in one function.
pub(super) struct Finder<'l> {
    listing: &'l Listing,
    operands: &'l [Operands],
}

impl<'l> Finder<'l> {
    /// Creates a finder; `operands` are those of the listing's instructions.
    pub fn new(listing: &'l Listing, operands: &'l [Operands]) -> Self {
        Finder { listing, operands }
    }

    /// Returns instructions and their data addresses as these registers give them, for a sample at instruction `number`: that instruction's own,
    /// otherwise the nearest before and the nearest after it. Stack slots are left out.
    pub fn find(&self, number: usize, row: &RegisterSample) -> Vec<(usize, u64)> {
        if let Some(address) = self.address(number, row) {
            return vec![(number, address)];
        }
        [self.before(number, row), self.after(number, row)].into_iter().flatten().collect()
    }

    /// Searches backwards within the block: those instructions certainly ran just before.
    fn before(&self, number: usize, row: &RegisterSample) -> Option<(usize, u64)> {
        let block = self.listing.instructions()[number].block;
        let mut changed: Vec<Register> = Vec::new();
        for at in (number.saturating_sub(BEFORE)..number).rev() {
            if self.listing.instructions()[at].block != block || self.is_call(at) {
                return None;
            }
            changed.extend(&self.operands[at].writes);
            if let Some(address) = self.address(at, row) {
                return self.is_kept(at, &changed).then_some((at, address));
            }
        }
        None
    }

    /// Searches forwards along the path that loops take (backward branches are followed), emulating what the registers will hold.
    fn after(&self, number: usize, row: &RegisterSample) -> Option<(usize, u64)> {
        let mut values = Values::new(&self.listing.decoded()[number], &row.values);
        let mut at = number;
        for _ in 0..AFTER {
            values.step(&self.listing.decoded()[at], &self.operands[at]);
            at = self.next(at)?;
            if self.is_data(at) {
                return data_address(&self.listing.decoded()[at], &values).map(|address| (at, address));
            }
        }
        None
    }

    fn next(&self, at: usize) -> Option<usize> {
        let to = self.listing.jump(at);
        match self.listing.instructions()[at].class.kind {
            InstructionKind::Jump => to,
            InstructionKind::Branch if to.is_some_and(|to| to <= at) => to,
            InstructionKind::IndirectJump | InstructionKind::Return => None,
            _ if self.is_call(at) => None,
            _ => Some(at + 1).filter(|&next| next < self.operands.len()),
        }
    }

    fn is_call(&self, at: usize) -> bool {
        use InstructionKind::{Call, IndirectCall, SystemCall};
        matches!(self.listing.instructions()[at].class.kind, Call | IndirectCall | SystemCall)
    }

    fn is_kept(&self, at: usize, changed: &[Register]) -> bool {
        !self.operands[at].address.iter().any(|register| changed.contains(register))
    }

    /// Returns the address of an instruction's memory operand with these registers, if it has one outside the frame.
    fn address(&self, at: usize, row: &RegisterSample) -> Option<u64> {
        let instruction = &self.listing.decoded()[at];
        self.is_data(at).then(|| data_address(instruction, &Values::new(instruction, &row.values))).flatten()
    }

    /// Whether an instruction accesses memory other than a stack slot or a thread-local variable.
    fn is_data(&self, at: usize) -> bool {
        let class = self.listing.instructions()[at].class;
        let place =
            matches!(class.place, Some(MemoryPlace::Pointer | MemoryPlace::Indexed | MemoryPlace::Global));
        let instruction = &self.listing.decoded()[at];
        place && instruction.memory().is_some() && (class.loads || class.stores) && !instruction.is_invalid()
    }
}

/// Returns the address of a memory operand.
fn data_address(instruction: &MachineInstruction, values: &Values) -> Option<u64> {
    let is_one = instruction.memory().is_some_and(|memory| !memory.is_scattered);
    let address = values.address(instruction).filter(|_| is_one)?;
    // Addresses of user code have the upper half clear (x86-64 ABI, 3.3.2; Linux on aarch64, without the tag); anything else is a register that
    // holds no address.
    (0x1000..1 << 56).contains(&address).then_some(address)
}
