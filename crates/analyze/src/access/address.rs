//! Which addresses the registers of a sample tell.

use iced_x86::{Code, Instruction, InstructionInfoFactory, OpKind, Register};
use plumb_profile::RegisterSample;

use crate::annotate::{InstructionKind, Listing, MemoryPlace};
use crate::loops::Operands;

/// How far is looked back, and ahead.
const BEFORE: usize = 5;
const AFTER: usize = 8;

/// Finds addresses.
pub(super) struct Finder<'l> {
    listing: &'l Listing,
    operands: Vec<Operands>,
}

impl<'l> Finder<'l> {
    pub fn new(listing: &'l Listing) -> Self {
        let mut factory = InstructionInfoFactory::new();
        let operands = listing.decoded().iter().map(|one| Operands::of(one, &mut factory)).collect();
        Finder { listing, operands }
    }

    /// The instructions whose addresses these registers tell, at the instruction with this number: that one itself, else the nearest
    /// one before and the nearest one after it. Places in the frame are left out.
    pub fn find(&self, number: usize, row: &RegisterSample) -> Vec<(usize, u64)> {
        if let Some(address) = self.address(number, row) {
            return vec![(number, address)];
        }
        [self.before(number, row), self.after(number, row)].into_iter().flatten().collect()
    }

    /// Back along instructions that ran just before for sure: within the block.
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

    /// On along the way that loops take: back where a branch leads back.
    fn after(&self, number: usize, row: &RegisterSample) -> Option<(usize, u64)> {
        let mut changed: Vec<Register> = Vec::new();
        let mut at = number;
        for _ in 0..AFTER {
            changed.extend(&self.operands[at].writes);
            at = self.next(at)?;
            if let Some(address) = self.address(at, row) {
                return self.is_kept(at, &changed).then_some((at, address));
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

    /// The address of an instruction's memory operand with these registers, if it has one that is worth knowing.
    fn address(&self, at: usize, row: &RegisterSample) -> Option<u64> {
        let class = self.listing.instructions()[at].class;
        let is_data =
            matches!(class.place, Some(MemoryPlace::Pointer | MemoryPlace::Indexed | MemoryPlace::Global));
        let instruction = &self.listing.decoded()[at];
        let has_operand = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
        if !is_data || !has_operand || !(class.loads || class.stores) || instruction.code() == Code::INVALID {
            return None;
        }
        effective(instruction, row)
    }
}

/// The address that a memory operand names: base + index × scale + displacement.
fn effective(instruction: &Instruction, row: &RegisterSample) -> Option<u64> {
    if instruction.is_vsib() {
        return None;
    }
    if instruction.is_ip_rel_memory_operand() {
        // By the file's addresses: the same for all samples of a file.
        return Some(instruction.ip_rel_memory_address());
    }
    let value = |register: Register| match register {
        Register::None => Some(0),
        _ => row.values.get(dwarf_number(register.full_register())?).copied(),
    };
    let base = value(instruction.memory_base())?;
    let index = value(instruction.memory_index())?;
    let scaled = index.wrapping_mul(instruction.memory_index_scale().into());
    let address = base.wrapping_add(scaled).wrapping_add(instruction.memory_displacement64());
    // Addresses of user code have the upper half clear (x86-64 ABI, 3.3.2); anything else is a register of another meaning.
    (0x1000..1 << 56).contains(&address).then_some(address)
}

fn dwarf_number(register: Register) -> Option<usize> {
    Some(match register {
        Register::RAX => 0,
        Register::RDX => 1,
        Register::RCX => 2,
        Register::RBX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        Register::R8 => 8,
        Register::R9 => 9,
        Register::R10 => 10,
        Register::R11 => 11,
        Register::R12 => 12,
        Register::R13 => 13,
        Register::R14 => 14,
        Register::R15 => 15,
        _ => return None,
    })
}
