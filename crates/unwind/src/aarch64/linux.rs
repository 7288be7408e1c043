//! Registers of 64-bit ARM as Linux hands them out.

use super::{Aarch64, COUNT, PC, Registers, VG};
use crate::linux::{LinuxRegisters, NT_PRSTATUS, StoppedRegisters};

/// Register sets (include/uapi/linux/elf.h): the thread pointer; the number of the system call, 4 bytes, -1: in none.
const NT_ARM_TLS: i32 = 0x401;
const NT_ARM_SYSTEM_CALL: i32 = 0x404;
/// Register set of SVE, which begins with `struct user_sve_header` (asm/ptrace.h); its second word begins with the length of vectors in bytes.
const NT_ARM_SVE: i32 = 0x405;
/// Bit of the processor state for 32-bit code (asm/ptrace.h).
const PSR_MODE32_BIT: u64 = 0x10;
/// Position of the processor state in `struct user_pt_regs`, after the registers in the order of their DWARF numbers.
const PSTATE: usize = COUNT as usize;

impl LinuxRegisters for Aarch64 {
    const NAME: &'static str = "aarch64";
    /// x0 to x30, sp, pc.
    const PERF_MASK: u64 = (1 << COUNT) - 1;
    const ARGUMENTS: [u16; 6] = [0, 1, 2, 3, 4, 5];
    /// AAPCS64 §6.4.5.1: nothing below the stack pointer is preserved.
    const RED_ZONE: u64 = 0;

    /// Perf's order (asm/perf_regs.h) is that of DWARF.
    #[inline]
    fn of_perf(number: u32) -> Option<u16> {
        u16::try_from(number).ok().filter(|&register| register <= PC || register == VG)
    }

    fn stopped(mut read: impl FnMut(i32, &mut [u64]) -> usize) -> Option<StoppedRegisters<Self>> {
        let mut words = [0; PSTATE + 1];
        if read(NT_PRSTATUS, &mut words) < size_of_val(&words) || words[PSTATE] & PSR_MODE32_BIT != 0 {
            return None;
        }
        let mut registers = Registers::unknown();
        // `set` ignores what is not tracked.
        (0..).zip(words).for_each(|(register, value)| registers.set(register, value));
        let mut vectors = [0; 2];
        if read(NT_ARM_SVE, &mut vectors) >= size_of_val(&vectors) {
            registers.set(VG, (vectors[1] & 0xffff) / 8);
        }
        let (mut pointer, mut call) = ([0], [0]);
        read(NT_ARM_TLS, &mut pointer);
        let in_system_call = read(NT_ARM_SYSTEM_CALL, &mut call) > 0 && (call[0] as u32).cast_signed() >= 0;
        Some(StoppedRegisters { registers, thread_pointer: pointer[0], in_system_call })
    }
}
