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
    /// Values of `e_machine` (elf.h).
    const EM_386: u16 = 3;
    const EM_ARM: u16 = 40;
    const EM_X86_64: u16 = 62;
    const EM_AARCH64: u16 = 183;

    /// Returns the numbers (`e_machine`) of the ELF files whose code a machine runs, by its name in `uname -m`; none if they are not known.
    pub fn machines_of(name: &str) -> &'static [u16] {
        match name {
            "x86_64" => &[Self::EM_X86_64, Self::EM_386],
            "aarch64" => &[Self::EM_AARCH64, Self::EM_ARM],
            _ => &[],
        }
    }

    /// Returns the instruction set for an ELF header's `e_machine`; `None` if its code is not decoded.
    pub fn of_machine(machine: u16) -> Option<Self> {
        match machine {
            Self::EM_386 => Some(Self::X86),
            Self::EM_X86_64 => Some(Self::X86_64),
            Self::EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }
}
