//! The two address spaces of this crate, as types of their own so that they are never mixed up.
//!
//! `Svma = Avma - bias`, wrapping. Not here: file offsets; nothing in this crate knows files.

use core::fmt;

/// An actual virtual memory address: where something is in the running process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Avma(pub u64);

/// A stated virtual memory address: what the ELF file says, before the loader moved it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Svma(pub u64);

impl Avma {
    /// The address in the file of a module that is loaded with `bias`.
    pub fn to_svma(self, bias: u64) -> Svma {
        Svma(self.0.wrapping_sub(bias))
    }

    /// The address `offset` bytes further, wrapping.
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
