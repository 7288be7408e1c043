//! The instruction sets whose code is decoded.

/// The instruction set of a file's code: that of its ELF header, whatever machine reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstructionSet {
    /// 32-bit x86.
    X86,
    /// x86-64.
    X86_64,
    /// A64, the 64-bit instructions of Arm.
    Aarch64,
}

impl InstructionSet {
    /// Returns the instruction set for an ELF header's `e_machine`; `None` if its code is not decoded.
    pub fn of_machine(machine: u16) -> Option<Self> {
        /// `EM_386`, `EM_X86_64` and `EM_AARCH64` (elf.h).
        const X86: u16 = 3;
        const X86_64: u16 = 62;
        const AARCH64: u16 = 183;
        match machine {
            X86 => Some(Self::X86),
            X86_64 => Some(Self::X86_64),
            AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }
}
