//! DWARF numbers of 32-bit ARM registers: AADWARF32 §4.1.

/// DWARF number of `r7`, the frame pointer of Thumb code.
pub const R7: u16 = 7;
/// DWARF number of `r11`, the frame pointer of ARM code.
pub const R11: u16 = 11;
/// DWARF number of the stack pointer, `r13`.
pub const SP: u16 = 13;
/// DWARF number of the link register, `r14`.
pub const LR: u16 = 14;
/// DWARF number of the program counter, `r15`.
pub const PC: u16 = 15;
/// Number of tracked registers: `0..COUNT`.
pub const COUNT: u16 = 16;
/// The frame pointer that compact rules use: `r7`, because distributions build Thumb code.
pub const FP: u16 = R7;
