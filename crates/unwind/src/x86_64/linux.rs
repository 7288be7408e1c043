//! Registers of x86_64 as Linux hands them out.

use super::{COUNT, RAX, RBP, RBX, RDX, RIP, RSP, Registers, X86_64};
use crate::linux::{LinuxRegisters, NT_PRSTATUS, StoppedRegisters};

const RCX: u16 = 2;
const RSI: u16 = 4;
const RDI: u16 = 5;
/// `__USER_CS` (asm/segment.h): the code segment of 64-bit programs.
const USER_CODE_64: u64 = 0x33;
/// Marks a word that is not one of the tracked registers.
const OTHER: u16 = COUNT;

/// Registers in perf's order (asm/perf_regs.h): ax bx cx dx si di bp sp ip, flags and segments, then r8 to r15.
#[rustfmt::skip]
const PERF: [u16; 24] = [
    RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, RIP, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER,
    8, 9, 10, 11, 12, 13, 14, 15,
];

/// Registers in the order of `struct user_regs_struct` (asm/user_64.h).
#[rustfmt::skip]
const USER: [u16; 27] = [
    15, 14, 13, 12, RBP, RBX, 11, 10, 9, 8, RAX, RCX, RDX, RSI, RDI, OTHER,
    RIP, OTHER, OTHER, RSP, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER,
];
/// Positions there of the system call's number (-1: in none), the code segment and the base of the segment FS.
const ORIG_RAX: usize = 15;
const CS: usize = 17;
const FS_BASE: usize = 21;

impl LinuxRegisters for X86_64 {
    const NAME: &'static str = "x86_64";
    const PERF_MASK: u64 = 0x00ff_01ff;
    /// System V ABI, AMD64 supplement, A.2.1.
    const ARGUMENTS: [u16; 6] = [RDI, RSI, RDX, 10, 8, 9];
    /// System V ABI, AMD64 supplement, 3.2.2.
    const RED_ZONE: u64 = 128;

    #[inline]
    fn of_perf(number: u32) -> Option<u16> {
        PERF.get(number as usize).copied().filter(|&register| register != OTHER)
    }

    fn stopped(mut read: impl FnMut(i32, &mut [u64]) -> usize) -> Option<StoppedRegisters<Self>> {
        let mut words = [0; USER.len()];
        if read(NT_PRSTATUS, &mut words) < size_of_val(&words) || words[CS] != USER_CODE_64 {
            return None;
        }
        let mut registers = Registers::unknown();
        // `set` ignores what is not tracked.
        USER.into_iter().zip(words).for_each(|(register, value)| registers.set(register, value));
        let in_system_call = words[ORIG_RAX].cast_signed() >= 0;
        Some(StoppedRegisters { registers, thread_pointer: words[FS_BASE], in_system_call })
    }
}
