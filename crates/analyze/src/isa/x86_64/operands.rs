//! Inputs and outputs of instructions.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register as Part};

use super::{MachineInstruction, whole};
use crate::isa::model::{Operands, Register};

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V ABI), by DWARF number.
const CLOBBERED: [u8; 9] = [0, 2, 1, 4, 5, 8, 9, 10, 11];

/// Reads the operands of instructions.
pub(crate) struct OperandReader(InstructionInfoFactory);

impl OperandReader {
    pub fn new() -> Self {
        Self(InstructionInfoFactory::new())
    }

    /// Returns the operands of an instruction.
    pub fn of(&mut self, instruction: &MachineInstruction) -> Operands {
        of(&instruction.0, &mut self.0)
    }
}

fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Operands {
    let info = factory.info(instruction);
    let mut operands = Operands {
        reads_flags: instruction.rflags_read() != 0,
        sets_flags: instruction.rflags_modified() != 0,
        ..Operands::default()
    };
    for used in info.used_registers() {
        let register = whole(used.register());
        let (reads, writes) = access(used.access());
        operands.reads.extend(register.filter(|_| reads));
        operands.writes.extend(register.filter(|_| writes));
    }
    for memory in info.used_memory() {
        let (reads, writes) = access(memory.access());
        operands.loads |= reads;
        operands.stores |= writes;
        let parts = [memory.base(), memory.index()].into_iter().filter(|&part| !is_ip(part));
        operands.address.extend(parts.filter_map(whole));
    }
    if is_zero(instruction) {
        operands.reads.clear();
    }
    if instruction.is_call_near() || instruction.is_call_near_indirect() {
        operands.writes.extend(CLOBBERED.map(Register::General));
    }
    operands
}

/// Returns whether it reads, and whether it writes.
pub(super) fn access(access: OpAccess) -> (bool, bool) {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    (
        matches!(access, Read | CondRead | ReadWrite | ReadCondWrite),
        matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite),
    )
}

fn is_ip(register: Part) -> bool {
    matches!(register, Part::RIP | Part::EIP)
}

/// Whether it is a zeroing idiom such as `xor r, r`: the result does not depend on the register.
fn is_zero(instruction: &Instruction) -> bool {
    use Mnemonic::{Pxor, Sub, Vpxor, Vpxord, Vpxorq, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
    let clears = matches!(
        instruction.mnemonic(),
        Xor | Sub | Pxor | Xorps | Xorpd | Vpxor | Vpxord | Vpxorq | Vxorps | Vxorpd
    );
    let count = instruction.op_count();
    clears
        && count >= 2
        && instruction.op_kind(count - 1) == OpKind::Register
        && instruction.op_kind(count - 2) == OpKind::Register
        && instruction.op_register(count - 1) == instruction.op_register(count - 2)
}
