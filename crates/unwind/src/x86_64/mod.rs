//! x86_64: its registers and calling convention.
//!
//! Register numbers are those of the System V ABI, AMD64 supplement, figure 3.36.

mod ahead;
mod edge;
mod landing;
mod last;
mod linux;
mod numbers;
mod realigned;

use crate::address::Avma;
use crate::architecture::{Architecture, Edge, Epilogue};
use crate::isa::Isa;
use crate::memory::Memory;
use crate::row::{RegisterRule, Row};

pub use last::LONGEST as LONGEST_END;
pub use numbers::{COUNT, FP, PC, RAX, RBP, RBX, RDX, RIP, RSP, SP};

/// Returns whether code that begins with these bytes ends its thread, as the code that coroutines and threads return
/// to does. Such code has no caller. Looks only at the first [`LONGEST_END`] bytes.
pub fn ends_thread(code: &[u8]) -> bool {
    last::ends(&code[..code.len().min(LONGEST_END)])
}

/// Marker type for x86_64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct X86_64;

/// Integer registers by DWARF number (0..=15, 16 = `rip`).
pub type Registers = crate::registers::RegisterSet<X86_64>;

impl Architecture for X86_64 {
    type Values = [u64; COUNT as usize];
    const ZERO: Self::Values = [0; COUNT as usize];
    const ISA: Isa = Isa::X86_64;
    const PC: u16 = PC;
    const SP: u16 = SP;
    const FP: u16 = FP;
    const LR: Option<u16> = None;
    const COUNT: u16 = COUNT;

    /// System V ABI, AMD64 supplement, §3.2.1: `rbx`, `rbp`, `rsp`, `r12`..`r15`.
    fn is_preserved(register: u16) -> bool {
        matches!(register, RBX | RBP | RSP | 12..=15)
    }

    fn has_restored<M: Memory>(
        row: &Row,
        text: &[u8],
        cfa: u64,
        registers: &Registers,
        memory: &mut M,
    ) -> bool {
        realigned::has_restored(row, text, cfa, registers, memory)
    }

    /// The last page of user memory but one: xol_add_vma in kernel/events/uprobes.c.
    fn is_probed_return(pc: u64) -> bool {
        pc == 0x7fff_ffff_e000
    }

    fn may_land(row: &Row) -> bool {
        landing::may_land(row)
    }

    fn lands(row: &Row) -> bool {
        landing::lands(row)
    }

    fn edge<M: Memory>(pc: Avma, memory: &mut M) -> Option<Edge> {
        edge::at(pc, memory)
    }

    fn epilogue<M: Memory>(pc: Avma, memory: &mut M) -> Option<Epilogue> {
        ahead::epilogue(pc, memory)
    }

    fn prologue<M: Memory>(pc: Avma, memory: &mut M) -> u64 {
        ahead::prologue(pc, memory)
    }

    fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
        last::ends_thread(pc, memory)
    }

    fn begins_thread<M: Memory>(registers: &Registers, memory: &mut M) -> bool {
        registers.get(RAX) == Some(0) && last::begins_thread(Avma(registers.ip()), memory)
    }

    fn trampoline<M: Memory>(pc: Avma, memory: &mut M) -> Option<i64> {
        // Python/asm_trampoline.S of CPython: sub $8, %rsp; call *%rcx; add $8, %rsp; ret.
        const STUB: [u8; 11] = [0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3];
        const CALL_END: u64 = 6;
        let mut code = [0; STUB.len()];
        let is_read = memory.read_code(Avma(pc.0.wrapping_sub(CALL_END)), &mut code);
        (is_read && code == STUB).then_some(8)
    }

    fn is_restored(rule: RegisterRule, text: &[u8]) -> bool {
        realigned::is_on_rbp(rule, text)
    }
}
