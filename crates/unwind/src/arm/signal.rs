//! The signal frame that the kernel pushes on 32-bit ARM.
//!
//! A C library that supplies its own sigreturn code describes it in `.ARM.exidx`. Otherwise a handler returns to the
//! kernel's code (arch/arm/kernel/sigreturn_codes.S), which has no unwind information.

use super::{COUNT, PC, Registers, SP};
use crate::address::Avma;
use crate::memory::Memory;

/// Offset of `r0` in a frame without `siginfo_t`: after 20 bytes of `ucontext_t` and three words of `sigcontext`
/// (arch/arm/include/asm/ucontext.h, uapi/asm/sigcontext.h). `r1`..`r15` follow.
const R0: u64 = 20 + 12;
/// Size of `siginfo_t`, which comes first if the handler asked for it.
const SIGINFO: u64 = 128;
/// Number of the system call `sigreturn`; below, of `rt_sigreturn`.
const SIGRETURN: u32 = 119;
const RT_SIGRETURN: u32 = 173;

/// Returns the registers that a signal interrupted, if the program counter is at sigreturn code. The second value is
/// the address where the program counter was read.
pub(super) fn interrupted<M: Memory>(registers: &Registers, memory: &mut M) -> Option<(Registers, Avma)> {
    let call = system_call(registers, memory)?;
    let frame = registers.get(SP)?;
    let r0 = frame.wrapping_add(R0 + if call == RT_SIGRETURN { SIGINFO } else { 0 });
    let slot = |register: u16| Avma(r0.wrapping_add(4 * u64::from(register)));
    let mut read = |register: u16| memory.read_u32(slot(register)).ok().map(u64::from);
    let mut found = Registers::new(read(PC)? & !1, read(SP)?);
    for register in 0..COUNT - 1 {
        found.set(register, read(register)?);
    }
    Some((found, slot(PC)))
}

/// Returns the number of the system call that the code at the program counter makes (`mov r7, #n; svc`), if it is one
/// of the two.
fn system_call<M: Memory>(registers: &Registers, memory: &mut M) -> Option<u32> {
    let pc = registers.ip();
    let mut code = |offset: u64| memory.read_u32(Avma(pc.wrapping_add(offset))).ok();
    let first = code(0)?;
    let call = [SIGRETURN, RT_SIGRETURN].into_iter().find(|&call| {
        let arm = first == 0xe3a0_7000 | call && code(4).is_some_and(|svc| svc >> 24 == 0xef);
        // movs r7, #n; svc #0
        let thumb = first == 0xdf00_2700 | call;
        arm || thumb
    })?;
    Some(call)
}
