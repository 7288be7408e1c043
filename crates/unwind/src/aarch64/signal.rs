//! The kernel's frame for a signal on 64-bit ARM.
//!
//! A handler returns to `mov x8, #__NR_rt_sigreturn; svc #0`, which the kernel's vdso has (arch/arm64/kernel/vdso/
//! sigreturn.S). That code has no call-frame information, or, in kernels of some years, some that leads to the caller
//! of what was interrupted. The frame has the same layout in all (arch/arm64/include/uapi/asm/{ucontext,sigcontext}.h).

use super::{FP, PC, Registers, SP, X30};
use crate::address::Avma;
use crate::memory::Memory;
use crate::row::{CfaRule, RegisterRule, Row};

/// `mov x8, #139`, `svc #0`.
const TRAMPOLINE: [u32; 2] = [0xd280_1168, 0xd400_0001];
/// The frame begins with `siginfo_t` (128 bytes) and a `ucontext_t`, in which 176 bytes come before the
/// `sigcontext`, and in that the address of a fault before `x0`. After `x30` come `sp` and `pc`, as in DWARF's numbers.
const X0: u64 = 128 + 176 + 8;

/// Whether the program counter is at the kernel's code. Unknown where code can't be read.
pub(super) fn is_trampoline<M: Memory>(registers: &Registers, memory: &mut M) -> bool {
    let mut code = |offset: u64| memory.read_u32(Avma(registers.ip().wrapping_add(offset)));
    code(0) == Ok(TRAMPOLINE[0]) && code(4) == Ok(TRAMPOLINE[1])
}

/// Whether a row is what kernels said of that code: a frame record at the frame pointer. The kernel keeps the link
/// register there, not the program counter.
pub(super) fn is_trampoline_row(row: &Row) -> bool {
    row.is_signal
        && matches!(row.cfa, CfaRule::Register { register: FP, .. })
        && row.register(FP) == RegisterRule::Offset(0)
        && row.register(PC) == RegisterRule::Offset(8)
}

/// The registers in the frame that is on top of the stack, and where its program counter is.
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
