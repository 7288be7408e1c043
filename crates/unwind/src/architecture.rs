//! What the walker must know of an architecture, as a trait that each architecture's module implements.
//!
//! All of it is constants and small functions, so that a walk compiles to code for one architecture. Not here: anything
//! of one architecture; that is in `x86_64`, `aarch64` and `arm`, under the same names in each. Nor the walk, which knows
//! architectures by this trait alone.

use core::fmt::Debug;

use crate::address::Avma;
use crate::isa::Isa;
use crate::memory::{Memory, ReadError};
use crate::registers::RegisterSet;
use crate::row::{RegisterRule, Row};

/// Where a function is that has no frame of its own yet, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The return address is on top of the stack, and all registers that calls preserve are the caller's.
    Bare,
    /// The same, but the frame pointer was pushed since.
    Pushed,
}

/// An architecture. Implemented by the markers [`X86_64`](crate::x86_64::X86_64), [`Aarch64`](crate::aarch64::Aarch64)
/// and [`Arm`](crate::arm::Arm), and by nothing else. Registers go by their DWARF numbers.
pub trait Architecture: Copy + Eq + Debug + 'static {
    /// The values of all tracked registers.
    #[doc(hidden)]
    type Values: Copy + Eq + Debug + AsRef<[u64]> + AsMut<[u64]>;
    #[doc(hidden)]
    const ZERO: Self::Values;

    /// The architecture as a value.
    const ISA: Isa;
    /// The program counter.
    const PC: u16;
    /// The stack pointer.
    const SP: u16;
    /// The register that compilers use as frame pointer.
    const FP: u16;
    /// The link register, in which calls leave the return address, where there is one.
    const LR: Option<u16>;
    /// Registers `0..COUNT` are tracked.
    const COUNT: u16;
    /// Bytes of a word.
    const WORD: u64 = Self::ISA.word() as u64;
    /// An address has no other bits than these.
    #[doc(hidden)]
    const ADDRESS: u64 = if Self::WORD == 8 { u64::MAX } else { u32::MAX as u64 };

    /// Whether calls preserve a register.
    fn is_preserved(register: u16) -> bool;

    /// An address moved by some bytes; wraps as the architecture's do.
    #[doc(hidden)]
    #[inline(always)]
    fn add(base: u64, offset: i64) -> u64 {
        base.wrapping_add_signed(offset) & Self::ADDRESS
    }

    /// Reads a word.
    #[doc(hidden)]
    #[inline(always)]
    fn read_word<M: Memory>(memory: &mut M, at: Avma) -> Result<u64, ReadError> {
        if Self::WORD == 8 { memory.read_u64(at) } else { memory.read_u32(at).map(u64::from) }
    }

    /// A return address as the address of code: without what else its bits say (signatures, Thumb state). `bits` is
    /// [`CodeMap::address_bits`].
    #[doc(hidden)]
    #[inline(always)]
    fn code_address(value: u64, bits: u32) -> u64 {
        let _ = bits;
        value
    }

    /// Whether what a row says about saved registers is known to be wrong for this frame, because they have been
    /// restored; which rules are meant says [`Architecture::is_restored`].
    #[doc(hidden)]
    fn has_restored<M: Memory>(
        row: &Row,
        text: &[u8],
        cfa: u64,
        registers: &RegisterSet<Self>,
        memory: &mut M,
    ) -> bool {
        let _ = (row, text, cfa, registers, memory);
        false
    }

    /// Whether a return address is the kernel's code that a probe on returns (uretprobe) has functions return to.
    #[doc(hidden)]
    fn is_probed_return(pc: u64) -> bool {
        let _ = pc;
        false
    }

    /// Whether a rule is one of those that [`Architecture::has_restored`] is about.
    #[doc(hidden)]
    fn is_restored(rule: RegisterRule, text: &[u8]) -> bool {
        let _ = (rule, text);
        false
    }

    /// The registers that a signal interrupted, if the program counter is in the kernel's code that returns from
    /// signal handlers: then the kernel's frame for the signal is on top of the stack. And where the program counter is
    /// in it.
    #[doc(hidden)]
    fn interrupted<M: Memory>(
        registers: &RegisterSet<Self>,
        memory: &mut M,
    ) -> Option<(RegisterSet<Self>, Avma)> {
        let _ = (registers, memory);
        None
    }

    /// The same, if it is the row of such code but does not say where the registers are.
    #[doc(hidden)]
    fn interrupted_by_row<M: Memory>(
        row: &Row,
        registers: &RegisterSet<Self>,
        memory: &mut M,
    ) -> Option<(RegisterSet<Self>, Avma)> {
        let _ = (row, registers, memory);
        None
    }

    /// Where the frame that is being executed is, if its code says so: at the instructions that make and leave a frame
    /// with a frame pointer neither that nor the stack pointer tells alone.
    #[doc(hidden)]
    fn edge<M: Memory>(pc: Avma, memory: &mut M) -> Option<Edge> {
        let _ = (pc, memory);
        None
    }

    /// Whether a thread is about to run its first instruction in user code: behind the system call that has made it. It has no caller, and what
    /// its stack holds is no return address.
    #[doc(hidden)]
    fn begins_thread<M: Memory>(registers: &RegisterSet<Self>, memory: &mut M) -> bool {
        let _ = (registers, memory);
        false
    }

    /// Whether the code at a return address ends its thread, so that it has no caller: a start routine without rules.
    #[doc(hidden)]
    fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
        let _ = (pc, memory);
        false
    }

    /// How many bytes above the stack pointer the return address is, if this is the return address of a call in a stub that only makes
    /// room, calls and returns.
    #[doc(hidden)]
    fn trampoline<M: Memory>(pc: Avma, memory: &mut M) -> Option<i64> {
        let _ = (pc, memory);
        None
    }
}
