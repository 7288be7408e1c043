//! How the walker learns which code is where in the process that it unwinds.
//!
//! Not here: mappings themselves; callers keep those and answer questions about them.

use crate::address::Avma;
use crate::module::Module;

/// The executable mappings of one address space.
pub trait CodeMap {
    /// What the sections of modules are kept in: `&[u8]`, a memory map, a `Vec<u8>`.
    type Bytes: AsRef<[u8]>;

    /// What is mapped executable at `pc`.
    fn locate(&self, pc: Avma) -> Located<'_, Self::Bytes>;

    /// How many low bits of a pointer to code are its address. On aarch64 the bits above may be a signature (pointer
    /// authentication); how many there are depends on the size of address spaces that the kernel was built for.
    fn address_bits(&self) -> u32 {
        48
    }

    /// Whether a runtime that makes code keeps frame pointers in all of it and ends their chain with zero, as the ABI has it (System V ABI,
    /// AMD64 supplement, §3.4.1). Elsewhere a zero there is a register that code without frame pointers used for something else.
    fn ends_chains_with_zero(&self) -> bool {
        false
    }
}

/// What is at an address.
#[derive(Debug)]
pub enum Located<'a, B> {
    /// Code of a file whose unwind sections are at hand.
    Module {
        /// The file's unwind information.
        module: &'a Module<B>,
        /// Actual minus stated address, wrapping.
        bias: u64,
    },
    /// Mapped executable, but without unwind information: a file that has none, or anonymous memory (JIT code). The
    /// frame-pointer convention is tried.
    NoInfo,
    /// Mapped executable, but the file could not be opened, so nothing is known.
    Unreadable,
    /// Not mapped, or not executable.
    Unmapped,
}
