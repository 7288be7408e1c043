//! Instructions as the analyses see them.

use plumb_profile::Address;

use crate::annotate::InstructionKind;

/// Latency of a load from the nearest cache, in cycles.
pub(crate) const LOAD: f64 = 4.5;

/// A register; a part of one counts as the whole register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Register {
    /// A general register, by DWARF number.
    General(u8),
    /// Another one, by a number of the instruction set's choice.
    Other(u16),
}

impl Register {
    /// Whether it is a general register.
    pub fn is_general(self) -> bool {
        matches!(self, Register::General(_))
    }
}

/// Registers that have a role in an instruction set's calling convention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convention {
    /// The stack pointer.
    pub stack: Register,
    /// The register that may be a frame pointer.
    pub frame: Register,
    /// Callee-saved registers in which an optimizer keeps variables before it puts any into the frame.
    pub kept: &'static [Register],
}

/// Operations that the analyses tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Moves or extends a value.
    Move,
    Add,
    Subtract,
    /// Computes an address without accessing it.
    Address,
    /// Multiplies, also by a shift to the left.
    Multiply,
    /// Compares two operands, and does nothing else.
    Compare,
    /// Exchanges, or compares and exchanges, as locks are taken.
    Exchange,
    Call,
    Other,
}

/// The memory that an operand addresses: base + index × scale + displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryOperand {
    /// `None`: there is none, or the displacement is an absolute address that is encoded relative to the instruction.
    pub base: Option<Register>,
    pub index: Option<Register>,
    pub scale: u32,
    pub displacement: u64,
    /// Size of the access in bytes; 0 if unknown.
    pub bytes: u64,
    /// Whether it consists of elements at many addresses.
    pub is_scattered: bool,
}

/// The inputs and outputs of an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operands {
    /// Registers that it reads, including those of addresses. Flags do not count.
    pub reads: Vec<Register>,
    /// Registers that it writes. A call writes all that the called function may change.
    pub writes: Vec<Register>,
    /// Registers in the address of its memory operand.
    pub address: Vec<Register>,
    /// Register of the address that it also advances, without waiting for memory (write-back); it is among `writes`.
    pub advances: Option<Register>,
    /// Reads memory.
    pub loads: bool,
    /// Writes memory.
    pub stores: bool,
    /// Depends on the condition flags.
    pub reads_flags: bool,
    /// Sets the condition flags.
    pub sets_flags: bool,
}

/// A decoded instruction.
///
/// Analyses of loops, skid and costs ask only these questions, so that they know no instruction set. An implementor is a small `Copy` value, made by
/// the `decode` function of its module; a variant of `MachineInstruction` (`any.rs`) and a `Convention` go with it.
///
/// - **Bytes are untrusted**: `decode` never fails. What it cannot decode is an instruction with [`is_invalid`](Self::is_invalid) of the smallest
///   size, so that addresses go on. It [always faults](Self::always_faults).
/// - **[`length`](Self::length) is at least 1**, and `address` plus `length` is the next instruction's address, wrapping.
/// - **No state**: methods are pure, may be called in any order and on any thread, and repeatedly.
/// - **[`increment`](Self::increment) is conservative**: if in doubt, `None`.
/// - **[`latency`](Self::latency) is a model**: usual cycles, not those of one core.
///
/// Examples: `x86_64` (by iced) and `aarch64` (by disarm64) beside this file.
pub(crate) trait Decode {
    /// Address of its first byte.
    fn address(&self) -> Address;
    /// Length in bytes.
    fn length(&self) -> u8;
    /// Target of a direct jump or call; otherwise the fixed address of its memory operand.
    fn target(&self) -> Option<Address>;
    /// Whether the bytes cannot be decoded.
    fn is_invalid(&self) -> bool;
    /// Whether execution cannot continue after it.
    fn always_faults(&self) -> bool;
    /// The operation.
    fn operation(&self) -> Operation;
    /// Whether it is a floating-point addition or multiplication.
    fn is_float_arithmetic(&self) -> bool;
    /// The constant that it adds to a register, and nothing else changes that register; `None`: another value is written.
    fn increment(&self, register: Register) -> Option<i64>;
    /// The memory operand.
    fn memory(&self) -> Option<MemoryOperand>;
    /// Whether an operand names one of these registers.
    fn names(&self, registers: &[Register]) -> bool;
    /// Cycles from its inputs to its result, with loads from the nearest cache.
    fn latency(&self, kind: InstructionKind) -> f64;
}
