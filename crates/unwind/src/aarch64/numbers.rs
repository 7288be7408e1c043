//! DWARF numbers of 64-bit ARM registers: AADWARF64 §4.1.

/// DWARF number of `x29`, the frame pointer.
pub const X29: u16 = 29;
/// DWARF number of `x30`, the link register.
pub const X30: u16 = 30;
/// DWARF number of the stack pointer.
pub const SP: u16 = 31;
/// DWARF number of the program counter.
pub const PC: u16 = 32;
/// Number of tracked registers: `0..COUNT`.
pub const COUNT: u16 = 33;
/// DWARF number of `VG`, the length of SVE's vectors in units of eight bytes.
pub const VG: u16 = 46;
/// The frame pointer: `x29`.
pub const FP: u16 = X29;
