//! The signal frame that the kernel pushes on 64-bit ARM.
//!
//! A handler returns to `mov x8, #__NR_rt_sigreturn; svc #0` in the kernel's vdso
//! (arch/arm64/kernel/vdso/sigreturn.S). That code has no call-frame information, or, in kernels of some years,
//! information that leads to the caller of the interrupted function. The frame layout is the same in all of them
//! (arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h).

use super::{FP, PC, Registers, SP, X30};
use crate::address::Avma;
use crate::memory::Memory;
use crate::row::{CfaRule, RegisterRule, Row};

/// `mov x8, #139`, `svc #0`.
const TRAMPOLINE: [u32; 2] = [0xd280_1168, 0xd400_0001];
/// Offset of `x0` in the frame: `siginfo_t` (128 bytes), the part of `ucontext_t` before the `sigcontext` (176
/// bytes), then the fault address (8 bytes). `x0`..`x30` are followed by `sp` and `pc`, in the order of the DWARF
/// numbers.
const X0: u64 = 128 + 176 + 8;

/// Returns whether the program counter is in the kernel's sigreturn code; `false` if code cannot be read.
pub(super) fn is_trampoline<M: Memory>(registers: &Registers, memory: &mut M) -> bool {
    let mut code = |offset: i64| {
        let (at, mut bytes) = (Avma(registers.ip()).offset(offset), [0; 4]);
        let is_read = memory.read_code(at, &mut bytes);
        if is_read { Some(u32::from_le_bytes(bytes)) } else { memory.read_u32(at).ok() }
    };
    match code(0) {
        Some(word) if word == TRAMPOLINE[0] => code(4) == Some(TRAMPOLINE[1]),
        Some(word) if word == TRAMPOLINE[1] => code(-4) == Some(TRAMPOLINE[0]),
        _ => false,
    }
}

/// Returns whether a row is the one that some kernels give for the sigreturn code: a frame record at the frame
/// pointer. The kernel saves the link register there, not the program counter.
pub fn is_trampoline_row(row: &Row) -> bool {
    row.is_signal
        && matches!(row.cfa, CfaRule::Register { register: FP, .. })
        && row.register(FP) == RegisterRule::Offset(0)
        && row.register(PC) == RegisterRule::Offset(8)
}

/// Reads the registers from the signal frame on top of the stack. The second value is the address where the program
/// counter was read.
pub(super) fn context<M: Memory>(registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
    let base = registers.get(SP)?.wrapping_add(X0);
    let slot = |register: u16| Avma(base.wrapping_add(8 * u64::from(register)));
    let mut read = |register: u16| memory.read_u64(slot(register)).ok();
    let mut found = Registers::new(read(PC)?, read(SP)?);
    for register in 0..=X30 {
        found.set(register, read(register)?);
    }
    Some((found, slot(PC)))
}
