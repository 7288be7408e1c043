//! 64-bit ARM: its registers and calling convention.
//!
//! Register numbers are those of the ABI's DWARF document (AADWARF64 §4.1). Vector registers are not tracked: no
//! unwind rule needs them.

mod ahead;
mod behind;
mod code;
mod decode;
mod landing;
mod linux;
mod numbers;
mod signal;
mod thread;

use crate::address::Avma;
use crate::architecture::{Architecture, Landing, Origin};
use crate::isa::Isa;
use crate::memory::Memory;
use crate::row::Row;

#[doc(hidden)]
pub use decode::{Access, Effect, effect};
pub use signal::is_trampoline_row;

pub use numbers::{COUNT, FP, PC, SP, VG, X29, X30};

/// Bits of an address in the smallest user memory that Linux can be built for.
const SMALLEST_USER_MEMORY: u32 = 36;

/// Marker type for 64-bit ARM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aarch64;

/// General registers by DWARF number (0..=30, 31 = `sp`, 32 = `pc`).
pub type Registers = crate::registers::RegisterSet<Aarch64>;

impl Architecture for Aarch64 {
    type Values = [u64; COUNT as usize];
    const ZERO: Self::Values = [0; COUNT as usize];
    const ISA: Isa = Isa::Aarch64;
    const PC: u16 = PC;
    const SP: u16 = SP;
    const FP: u16 = FP;
    const LR: Option<u16> = Some(X30);
    const COUNT: u16 = COUNT;
    const VECTOR_GRANULES: Option<u16> = Some(VG);

    /// AAPCS64 §6.1.1: `x19`..`x29` and `sp`.
    fn is_preserved(register: u16) -> bool {
        matches!(register, 19..=29 | SP)
    }

    /// Return addresses may carry a signature (pointer authentication) in the bits above those of an address.
    #[inline(always)]
    fn code_address(value: u64, bits: u32) -> u64 {
        value & (u64::MAX >> (64 - bits.clamp(1, 64)))
    }

    fn interrupted<M: Memory>(registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
        if signal::is_trampoline(registers, memory) { signal::context(registers, memory) } else { None }
    }

    fn interrupted_by_row<M: Memory>(
        row: &Row,
        registers: &Registers,
        memory: &mut M,
    ) -> Option<(Registers, Avma)> {
        if is_trampoline_row(row) { signal::context(registers, memory) } else { None }
    }

    /// The last page of user memory (xol_add_vma in kernel/events/uprobes.c), of 4, 16 or 64 KiB below a power of two.
    fn is_probed_return(pc: u64) -> bool {
        [12, 14, 16].iter().any(|bits| {
            let end = pc.wrapping_add(1 << bits);
            end.is_power_of_two() && end >= 1 << SMALLEST_USER_MEMORY
        })
    }

    fn may_land(row: &Row) -> bool {
        landing::may_land(row)
    }

    fn landing<M: Memory>(registers: &Registers, memory: &mut M) -> Option<Landing> {
        landing::at(registers, memory)
    }

    fn lands_soon<M: Memory>(registers: &Registers, memory: &mut M) -> bool {
        landing::is_ahead(registers, memory)
    }

    fn origin<M: Memory>(begin: Avma, registers: &Registers, memory: &mut M) -> Option<Origin<Self>> {
        behind::origin(begin, registers, memory)
    }

    fn ahead<M: Memory>(registers: &Registers, is_return: bool, memory: &mut M) -> Option<(Registers, Avma)> {
        ahead::caller(registers, is_return, memory)
    }

    fn correction<M: Memory>(
        registers: &Registers,
        is_bare: bool,
        memory: &mut M,
    ) -> Option<Option<(Registers, Avma)>> {
        ahead::correction(registers, is_bare, memory)
    }

    fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
        thread::ends_thread(pc, memory)
    }

    fn begins_thread<M: Memory>(registers: &Registers, memory: &mut M) -> bool {
        registers.get(0) == Some(0) && thread::begins_thread(Avma(registers.ip()), memory)
    }
}
