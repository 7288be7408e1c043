//! The supported architectures as values, for code that depends on one only by numbers.
//!
//! Behavior that differs between architectures is elsewhere ([`Architecture`](crate::Architecture)).

/// Number of columns in a [`Row`](crate::Row): enough for every architecture.
pub(crate) const COLUMNS: usize = 33;

/// An instruction set that a file can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Isa {
    /// x86_64 with words of eight bytes.
    #[default]
    X86_64,
    /// 64-bit ARM, little-endian.
    Aarch64,
    /// 32-bit ARM, little-endian, ARM and Thumb code.
    Arm,
}

impl Isa {
    /// Returns the size in bytes of a word, an address and a general register.
    pub const fn word(self) -> u8 {
        match self {
            Isa::X86_64 | Isa::Aarch64 => 8,
            Isa::Arm => 4,
        }
    }

    /// Returns the column of the return address in a row, whatever column the file uses for it.
    pub(crate) const fn return_column(self) -> u16 {
        match self {
            Isa::X86_64 => crate::x86_64::PC,
            Isa::Aarch64 => crate::aarch64::PC,
            Isa::Arm => crate::arm::PC,
        }
    }

    /// Returns the number of tracked registers.
    pub(crate) const fn columns(self) -> u16 {
        match self {
            Isa::X86_64 => crate::x86_64::COUNT,
            Isa::Aarch64 => crate::aarch64::COUNT,
            Isa::Arm => crate::arm::COUNT,
        }
    }
}
