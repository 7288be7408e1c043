//! DWARF numbers of x86_64 registers: System V ABI, AMD64 supplement, figure 3.36.

/// DWARF number of `rax`.
pub const RAX: u16 = 0;
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
/// The program counter: `rip`.
pub const PC: u16 = RIP;
/// The stack pointer: `rsp`.
pub const SP: u16 = RSP;
/// The frame pointer, where code keeps one: `rbp`.
pub const FP: u16 = RBP;
