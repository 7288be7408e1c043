//! The kernel's frame for a signal on 32-bit ARM.
//!
//! A C library that brings its own code to return from handlers describes it in `.ARM.exidx`. Else a handler returns
//! to code of the kernel's (arch/arm/kernel/sigreturn_codes.S), which nothing describes.

use super::{COUNT, PC, Registers, SP};
use crate::address::Avma;
use crate::memory::Memory;

/// Where `r0` is in a frame without `siginfo_t`: behind 20 bytes of `ucontext_t` and three words of `sigcontext`
/// (arch/arm/include/asm/ucontext.h, uapi/asm/sigcontext.h). `r1`..`r15` follow.
const R0: u64 = 20 + 12;
/// The size of `siginfo_t`, which comes first where a handler asked for it.
const SIGINFO: u64 = 128;
/// System calls `sigreturn` and `rt_sigreturn`.
const SIGRETURN: u32 = 119;
const RT_SIGRETURN: u32 = 173;

/// The registers that a signal interrupted, if the program counter is at such code.
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

/// Which of the two system calls the code at the program counter makes: `mov r7, #n; svc`.
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
