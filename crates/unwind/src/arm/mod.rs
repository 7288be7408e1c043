//! 32-bit ARM: its registers and calling convention.
//!
//! Register numbers are those of the ABI's DWARF document (AADWARF32 §4.1). VFP registers are not tracked: no unwind
//! rule needs them.

pub(crate) mod exidx;
mod numbers;
mod opcodes;
mod signal;

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::isa::Isa;
use crate::memory::Memory;

pub use numbers::{COUNT, FP, LR, PC, R7, R11, SP};

/// Marker type for 32-bit ARM.
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

    /// Clears bit 0, which is set if the caller is Thumb code.
    #[inline(always)]
    fn code_address(value: u64, _bits: u32) -> u64 {
        value & 0xffff_fffe
    }

    fn interrupted<M: Memory>(registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
        signal::interrupted(registers, memory)
    }
}
