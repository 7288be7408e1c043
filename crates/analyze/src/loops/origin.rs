//! The origin of a load's address, and the registers that instructions read and write.

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 to r11 (System V ABI).
const CLOBBERED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// The inputs and outputs of an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operands {
    /// Registers that it reads, including those of addresses.
    pub reads: Vec<Register>,
    /// Registers that it writes.
    pub writes: Vec<Register>,
    /// Registers in the address of its memory operand.
    pub address: Vec<Register>,
    /// Reads memory.
    pub loads: bool,
    /// Writes memory.
    pub stores: bool,
}

impl Operands {
    /// Returns the operands of an instruction. A part of a register counts as the whole register; flags do not count.
    pub fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let info = factory.info(instruction);
        let mut operands = Operands::default();
        for used in info.used_registers() {
            let register = used.register().full_register();
            let (reads, writes) = access(used.access());
            if reads {
                operands.reads.push(register);
            }
            if writes {
                operands.writes.push(register);
            }
        }
        for memory in info.used_memory() {
            let (reads, writes) = access(memory.access());
            operands.loads |= reads;
            operands.stores |= writes;
            let parts = [memory.base(), memory.index()].map(Register::full_register);
            operands.address.extend(parts.into_iter().filter(|&part| part != Register::None && !is_ip(part)));
        }
        if is_zero(instruction) {
            operands.reads.clear();
        }
        if instruction.is_call_near() || instruction.is_call_near_indirect() {
            operands.writes.extend(CLOBBERED);
        }
        operands
    }

    /// Returns the operands of each instruction of a function, in their order.
    pub fn of_all(decoded: &[Instruction]) -> Vec<Self> {
        let mut factory = InstructionInfoFactory::new();
        decoded.iter().map(|one| Operands::of(one, &mut factory)).collect()
    }
}

/// Returns whether it reads, and whether it writes.
pub(super) fn access(access: OpAccess) -> (bool, bool) {
    use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
    (
        matches!(access, Read | CondRead | ReadWrite | ReadCondWrite),
        matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite),
    )
}

fn is_ip(register: Register) -> bool {
    matches!(register, Register::RIP | Register::EIP)
}

/// Whether it is a zeroing idiom such as `xor r, r`: the result does not depend on the register.
pub(super) fn is_zero(instruction: &Instruction) -> bool {
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

/// The origin of a load's address within a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressOrigin {
    /// Constant: equal in each iteration.
    Fixed,
    /// Advances by the same step in each iteration.
    Strided,
    /// Read by the load itself in an earlier iteration: pointer chasing.
    OwnLoad,
    /// Read by another load, whose own address does not depend on earlier ones: an array of indices.
    OtherLoad,
    /// Computed in another way: a hash, a random number, an argument.
    Computed,
}

/// Returns the origin of the address of the load at `path[at]`. `decoded`: the function's instructions; `operands`: those of the path.
pub(crate) fn origin(
    decoded: &[Instruction],
    path: &[usize],
    operands: &[&Operands],
    at: usize,
    repeats: bool,
) -> AddressOrigin {
    let one = |at: usize| &decoded[path[at]];
    let mut slice = Slice { own: false, other: false, computed: false, strided: false };
    let mut met: Vec<(Register, usize)> = Vec::new();
    let mut open: Vec<(Register, usize)> =
        operands[at].address.iter().map(|&register| (register, at)).collect();
    while let Some((register, user)) = open.pop() {
        let Some(writer) = writer(operands, register, user, repeats) else {
            // In a loop no instruction changes it; without a loop it comes from outside.
            slice.computed |= !repeats;
            continue;
        };
        if met.contains(&(register, writer)) {
            // The register depends on its own previous value, with a step from a register.
            let adds = matches!(one(writer).mnemonic(), Mnemonic::Add | Mnemonic::Sub | Mnemonic::Lea);
            slice.strided |= adds && operands[writer].reads.contains(&register);
            slice.computed |= !adds && !is_move(one(writer)) && operands[writer].reads.contains(&register);
            continue;
        }
        met.push((register, writer));
        if is_step(one(writer), register) {
            slice.strided = true;
            continue;
        }
        let writes = operands[writer];
        if writes.loads {
            if writer == at {
                slice.own = true;
                continue;
            }
            slice.other = true;
            open.extend(writes.address.iter().map(|&part| (part, writer)));
            continue;
        }
        // After a call, or an instruction that is neither a move nor scaling, the origin is unknown.
        let is_known = !one(writer).is_call_near() && !one(writer).is_call_near_indirect();
        slice.computed |= !is_known || !is_move(one(writer)) && !is_scaling(one(writer));
        if is_known {
            open.extend(writes.reads.iter().map(|&part| (part, writer)));
        }
    }
    match slice {
        Slice { own: true, .. } => AddressOrigin::OwnLoad,
        Slice { other: true, .. } => AddressOrigin::OtherLoad,
        Slice { computed: true, .. } => AddressOrigin::Computed,
        Slice { strided: true, .. } => AddressOrigin::Strided,
        Slice { .. } => AddressOrigin::Fixed,
    }
}

/// The results of the backward search from an address.
struct Slice {
    own: bool,
    other: bool,
    computed: bool,
    strided: bool,
}

/// Returns the last instruction before `user` that writes a register; in a loop the search wraps around.
fn writer(operands: &[&Operands], register: Register, user: usize, repeats: bool) -> Option<usize> {
    let writes = |&at: &usize| operands[at].writes.contains(&register);
    let before = (0..user).rev().find(writes);
    before.or_else(|| (user..operands.len()).rev().filter(|_| repeats).find(writes))
}

/// Whether it advances a register by a constant: `add r, 8`, `inc r`, `lea r, [r+8]`.
pub(crate) fn is_step(instruction: &Instruction, register: Register) -> bool {
    let target = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == register;
    let by_number = instruction.op_count() == 2 && instruction.op1_kind() != OpKind::Register;
    match instruction.mnemonic() {
        Mnemonic::Inc | Mnemonic::Dec => target,
        Mnemonic::Add | Mnemonic::Sub => target && by_number && instruction.op1_kind() != OpKind::Memory,
        Mnemonic::Lea => {
            let base = instruction.memory_base().full_register();
            target && base == register && instruction.memory_index() == Register::None
        }
        _ => false,
    }
}

/// Whether the value is unchanged: moves and extensions between registers.
fn is_move(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movsx | Mnemonic::Movsxd | Mnemonic::Movzx | Mnemonic::Cdqe
    )
}

/// Whether a strided value stays strided: additions, and multiplication by a constant.
fn is_scaling(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Add | Mnemonic::Lea | Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Imul | Mnemonic::Sub
    )
}
