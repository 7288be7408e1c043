//! Registers of a thread as Linux hands them out on each architecture: in samples of perf and from ptrace(2).
//!
//! The implementations are in `x86_64::linux` and `aarch64::linux`, and are there on every machine, so that each is tested on any.
//! [`Native`] is the one of the machine that this is built for. Elsewhere: registers in signal frames, which walks read
//! ([`Architecture`]); system calls to get the registers.

use crate::architecture::Architecture;
use crate::registers::RegisterSet;

#[cfg(target_arch = "aarch64")]
pub use crate::aarch64::Aarch64 as Native;
#[cfg(target_arch = "x86_64")]
pub use crate::x86_64::X86_64 as Native;

/// Registers of the machine that this is built for.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub type Registers = RegisterSet<Native>;

/// Register set of `PTRACE_GETREGSET` with the general registers (include/uapi/linux/elf.h).
pub(crate) const NT_PRSTATUS: i32 = 1;

/// An architecture as Linux presents it. Registers are identified by DWARF number unless another numbering is named.
pub trait LinuxRegisters: Architecture {
    /// Name of the architecture in `uname -m`, in perf.data and in recordings.
    const NAME: &'static str;
    /// The registers that a sample needs, as bits of `sample_regs_user` (asm/perf_regs.h).
    const PERF_MASK: u64;
    /// Registers with the arguments of a system call, in order.
    const ARGUMENTS: [u16; 6];
    /// Number of bytes below the stack pointer that code may use.
    const RED_ZONE: u64;

    /// Returns the register with this number in perf's order (asm/perf_regs.h), if it is tracked.
    fn of_perf(number: u32) -> Option<u16>;

    /// Reads the registers of a stopped thread. `read` fills the words with a register set of `PTRACE_GETREGSET` and returns its size in bytes,
    /// 0 if there is none. Returns `None` if the thread runs 32-bit code.
    fn stopped(read: impl FnMut(i32, &mut [u64]) -> usize) -> Option<StoppedRegisters<Self>>;
}

/// Registers of a thread that ptrace(2) has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedRegisters<A: Architecture> {
    /// General registers.
    pub registers: RegisterSet<A>,
    /// Address that thread-local storage is relative to.
    pub thread_pointer: u64,
    /// Whether the thread is in a system call, whose arguments are still in the registers.
    pub in_system_call: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aarch64::Aarch64;
    use crate::x86_64::X86_64;

    /// Every requested register is tracked, by a number of its own, and the walk has what it starts with.
    fn check_mask<A: LinuxRegisters>() {
        let numbers = (0..64).filter(|bit| A::PERF_MASK >> bit & 1 != 0);
        let mut seen = 0_u64;
        for number in numbers {
            let register = A::of_perf(number).expect("only tracked registers are requested");
            assert!(register < A::COUNT && seen >> register & 1 == 0, "{number}");
            seen |= 1 << register;
        }
        for register in [A::PC, A::SP, A::FP].into_iter().chain(A::LR).chain(A::ARGUMENTS) {
            assert_ne!(seen >> register & 1, 0, "{register}");
        }
    }

    #[test]
    fn requested_registers_are_those_that_are_understood() {
        check_mask::<X86_64>();
        check_mask::<Aarch64>();
        assert_eq!(X86_64::of_perf(9), None, "flags");
        assert_eq!([33, 46].map(Aarch64::of_perf), [None, Some(46)]);
    }

    /// A register set whose words are their own indices plus 100, but for one.
    fn numbered(words: &mut [u64], (at, value): (usize, u64)) -> usize {
        words.iter_mut().zip(100..).for_each(|(word, number)| *word = number);
        words[at] = value;
        8 * words.len()
    }

    #[test]
    fn stopped_threads_of_x86_64() {
        let of_code = |code, call| {
            X86_64::stopped(|_, words| {
                numbered(words, (17, code));
                words[15] = call;
                8 * words.len()
            })
        };
        let stopped = of_code(0x33, 3).expect("64-bit code");
        let registers = &stopped.registers;
        // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp by their index in `struct user_regs_struct` (asm/user_64.h).
        let low: [_; 8] = core::array::from_fn(|number| registers.get(number as u16));
        assert_eq!(low, [110, 112, 111, 105, 113, 114, 104, 119].map(Some));
        assert_eq!([8, 15, 16].map(|number| registers.get(number)), [109, 100, 116].map(Some));
        assert_eq!((stopped.thread_pointer, stopped.in_system_call), (121, true));
        assert!(!of_code(0x33, u64::MAX).expect("64-bit code").in_system_call);
        assert_eq!(of_code(0x23, 3), None, "32-bit code");
        assert_eq!(X86_64::stopped(|_, _| 68), None, "the registers of a 32-bit thread");
    }

    #[test]
    fn stopped_threads_of_aarch64() {
        let of_state = |state, call: u64| {
            Aarch64::stopped(move |set, words| match set {
                NT_PRSTATUS => numbered(words, (33, state)),
                0x405 => {
                    words[1] = 32;
                    16
                }
                _ => {
                    words[0] = if words.len() == 1 && set & 0xff == 4 { call } else { 7000 };
                    8
                }
            })
        };
        let stopped = of_state(0x8000_0000, 63).expect("64-bit code");
        let registers = &stopped.registers;
        assert_eq!(
            [0, 29, 30, 31, 32, 46].map(|number| registers.get(number)),
            [100, 129, 130, 131, 132, 4].map(Some)
        );
        assert_eq!((stopped.thread_pointer, stopped.in_system_call), (7000, true));
        assert!(!of_state(0, 0xffff_ffff).expect("64-bit code").in_system_call);
        assert_eq!(of_state(0x10, 63), None, "32-bit code");
    }
}
