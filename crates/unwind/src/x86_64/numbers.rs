//! DWARF numbers of x86_64 registers: System V ABI, AMD64 supplement, figure 3.36.

/// DWARF number of `rax`.
pub const RAX: u16 = 0;
/// DWARF number of `rdx`.
pub const RDX: u16 = 1;
/// DWARF number of `rbx`.
pub const RBX: u16 = 3;
/// DWARF number of `rbp`.
pub const RBP: u16 = 6;
/// DWARF number of `rsp`.
pub const RSP: u16 = 7;
/// DWARF number of the return address column, used for `rip`.
pub const RIP: u16 = 16;
/// Number of tracked registers: `0..COUNT`. Vector registers are not tracked: no unwind rule needs them.
pub const COUNT: u16 = 17;
/// DWARF number of the program counter, `rip`.
pub const PC: u16 = RIP;
/// DWARF number of the stack pointer, `rsp`.
pub const SP: u16 = RSP;
/// DWARF number of the frame pointer, `rbp`, in code that has one.
pub const FP: u16 = RBP;
