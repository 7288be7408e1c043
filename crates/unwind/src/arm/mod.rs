//! What is particular to 32-bit ARM: its registers and their DWARF numbers, and what calls do with them.
//!
//! Numbers are those of the ABI's DWARF document (AADWARF32 §4.1); VFP registers are not tracked, no rule about frames
//! needs them.

pub(crate) mod exidx;
mod opcodes;
mod signal;

use crate::address::Avma;
use crate::architecture::{Architecture, Isa};
use crate::memory::Memory;

/// DWARF number of `r7`, the frame pointer of Thumb code.
pub const R7: u16 = 7;
/// DWARF number of `r11`, the frame pointer of ARM code.
pub const R11: u16 = 11;
/// The stack pointer: `r13`.
pub const SP: u16 = 13;
/// The link register: `r14`.
pub const LR: u16 = 14;
/// The program counter: `r15`.
pub const PC: u16 = 15;
/// Registers 0..COUNT are tracked.
pub const COUNT: u16 = 16;
/// The frame pointer that small rules know: `r7`, because distributions build Thumb code.
pub const FP: u16 = R7;

/// The architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm;

/// General registers by DWARF number (0..=15).
pub type Registers = crate::registers::RegisterSet<Arm>;

impl Architecture for Arm {
    type Values = [u64; COUNT as usize];
    const ZERO: Self::Values = [0; COUNT as usize];
    const ISA: Isa = Isa::Arm;
    const PC: u16 = PC;
    const SP: u16 = SP;
    const FP: u16 = FP;
    const LR: Option<u16> = Some(LR);
    const COUNT: u16 = COUNT;

    /// AAPCS32 §6.1.1: `r4`..`r11` and `sp`.
    fn is_preserved(register: u16) -> bool {
        matches!(register, 4..=11 | SP)
    }

    /// Bit 0 says that the caller is Thumb code.
    #[inline(always)]
    fn code_address(value: u64, _bits: u32) -> u64 {
        value & 0xffff_fffe
    }

    fn interrupted<M: Memory>(registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
        signal::interrupted(registers, memory)
    }
}
