//! The two kinds of address in this crate, as separate types so that they cannot be mixed up.
//!
//! `Svma = Avma - bias`, wrapping. File offsets are not represented: nothing in this crate knows files.

use core::fmt;

/// Actual virtual memory address: an address in the running process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Avma(pub u64);

/// Stated virtual memory address: an address as the ELF file gives it, before the loader moved it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Svma(pub u64);

impl Avma {
    /// Converts to the address in the file of a module loaded with `bias`.
    pub fn to_svma(self, bias: u64) -> Svma {
        Svma(self.0.wrapping_sub(bias))
    }

    /// Returns the address `offset` bytes further, wrapping.
    pub fn offset(self, offset: i64) -> Avma {
        Avma(self.0.wrapping_add_signed(offset))
    }
}

impl fmt::Debug for Avma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Avma({:#x})", self.0)
    }
}

impl fmt::Debug for Svma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Svma({:#x})", self.0)
    }
}
