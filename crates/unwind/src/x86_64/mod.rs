//! What is particular to x86_64: its registers and their DWARF numbers.
//!
//! Numbers are those of the System V ABI, AMD64 supplement, figure 3.36. Other architectures get modules of the same
//! names.

pub(crate) mod realigned;
mod registers;

pub use registers::Registers;

/// DWARF number of `rbx`.
pub const RBX: u16 = 3;
/// DWARF number of `rbp`.
pub const RBP: u16 = 6;
/// DWARF number of `rsp`.
pub const RSP: u16 = 7;
/// DWARF number of the return address column, which stands for `rip`.
pub const RIP: u16 = 16;
/// Registers 0..COUNT are tracked; vector registers are not, no rule about frames needs them.
pub const COUNT: u16 = 17;

/// Whether calls preserve a register (System V ABI, AMD64 supplement, §3.2.1): `rbx`, `rbp`, `rsp`, `r12`..`r15`.
pub(crate) const fn is_preserved(register: u16) -> bool {
    matches!(register, RBX | RBP | RSP | 12..=15)
}
