//! The architectures that are known, as values, for what depends on one only in numbers.
//!
//! Not here: what code has to do for one; that is [`Architecture`](crate::Architecture).

/// More registers than any architecture has columns in a [`Row`](crate::Row).
pub(crate) const COLUMNS: usize = 33;

/// The architectures that are known, as values: what a file is for.
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
    /// Bytes of a word, an address and a general register.
    pub const fn word(self) -> u8 {
        match self {
            Isa::X86_64 | Isa::Aarch64 => 8,
            Isa::Arm => 4,
        }
    }

    /// The column of a row that says where the return address is, whatever column the file uses for it.
    pub(crate) const fn return_column(self) -> u16 {
        match self {
            Isa::X86_64 => crate::x86_64::PC,
            Isa::Aarch64 => crate::aarch64::PC,
            Isa::Arm => crate::arm::PC,
        }
    }

    /// How many registers are tracked.
    pub(crate) const fn columns(self) -> u16 {
        match self {
            Isa::X86_64 => crate::x86_64::COUNT,
            Isa::Aarch64 => crate::aarch64::COUNT,
            Isa::Arm => crate::arm::COUNT,
        }
    }
}
