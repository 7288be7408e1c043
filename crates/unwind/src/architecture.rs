//! The [`Architecture`] trait: everything that the walker needs to know about an architecture.
//!
//! The trait has only constants and small functions, so that a walk compiles to code for one architecture. The
//! implementations are in `x86_64`, `aarch64` and `arm`, under the same names in each. The walk is elsewhere and
//! knows architectures only by this trait.

use core::fmt::Debug;

use crate::address::Avma;
use crate::isa::Isa;
use crate::memory::{Memory, ReadError};
use crate::registers::RegisterSet;
use crate::row::{RegisterRule, Row};

/// State of a function that has not set up its frame yet, or has already removed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The return address is on top of the stack, and all callee-saved registers still hold the caller's values.
    Bare,
    /// As in `Bare`, but the frame pointer has been pushed.
    Pushed,
}

/// The instructions of an epilogue that have yet to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epilogue {
    /// Distance in bytes from the stack pointer up to the return address.
    pub room: u64,
    /// Distance to the saved frame pointer, if it is yet to be restored.
    pub fp: Option<u64>,
}

/// Position of code that leaves for the handler of an exception and has no frame any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// The instructions may do so, but the registers are not those of that.
    Not,
    /// The stack pointer is about to move to the handler's frame. The function's caller is not known any more.
    Ahead,
    /// The stack pointer has moved there; the code goes to this address next.
    At(u64),
}

/// State of a function's caller after some of the function's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<A: Architecture> {
    /// The caller is known: its registers, with the raw return address.
    Caller(RegisterSet<A>),
    /// The stack pointer has been replaced, and the code goes on with these registers, as longjmp does.
    Target(RegisterSet<A>),
    /// The return address has been overwritten, but the stack pointer has not.
    Lost,
}

/// An architecture. Implemented only by the markers [`X86_64`](crate::x86_64::X86_64),
/// [`Aarch64`](crate::aarch64::Aarch64) and [`Arm`](crate::arm::Arm). Registers are identified by DWARF number.
pub trait Architecture: Copy + Eq + Debug + 'static {
    /// Storage for the values of all tracked registers.
    #[doc(hidden)]
    type Values: Copy + Eq + Debug + AsRef<[u64]> + AsMut<[u64]>;
    #[doc(hidden)]
    const ZERO: Self::Values;

    /// The architecture as a value.
    const ISA: Isa;
    /// DWARF number of the program counter.
    const PC: u16;
    /// DWARF number of the stack pointer.
    const SP: u16;
    /// DWARF number of the register that compilers use as frame pointer.
    const FP: u16;
    /// DWARF number of the link register, in which calls leave the return address; `None` if the architecture has
    /// none.
    const LR: Option<u16>;
    /// Number of tracked registers: `0..COUNT`.
    const COUNT: u16;
    /// DWARF number of the pseudo register with the length of scalable vectors, which is tracked besides, where the architecture has any.
    const VECTOR_GRANULES: Option<u16> = None;
    /// Word size in bytes.
    const WORD: u64 = Self::ISA.word() as u64;
    /// Mask of the bits that an address can have.
    #[doc(hidden)]
    const ADDRESS: u64 = if Self::WORD == 8 { u64::MAX } else { u32::MAX as u64 };

    /// Returns whether a register is callee-saved.
    fn is_preserved(register: u16) -> bool;

    /// Adds an offset in bytes to an address, wrapping as the architecture does.
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

    /// Converts a return address to a code address by clearing bits with other meanings (signatures, Thumb state).
    /// `bits` is [`CodeMap::address_bits`].
    #[doc(hidden)]
    #[inline(always)]
    fn code_address(value: u64, bits: u32) -> u64 {
        let _ = bits;
        value
    }

    /// Returns whether this frame has already restored its saved registers, so that the row's rules for them are
    /// wrong. [`Architecture::is_restored`] says which rules are affected.
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

    /// Returns whether a function with this row may leave for the handler of an exception, and then has the handler's registers where it
    /// had saved its caller's.
    #[doc(hidden)]
    fn may_land(row: &Row) -> bool {
        let _ = row;
        false
    }

    /// Returns whether the row is of an instruction that is about to leave for a handler, and runs on the handler's stack with the handler's
    /// registers. Its caller is the handler, at an instruction that follows no call.
    #[doc(hidden)]
    fn lands(row: &Row) -> bool {
        let _ = row;
        false
    }

    /// Whether a rule is one of those that [`Architecture::has_restored`] is about.
    #[doc(hidden)]
    fn is_restored(rule: RegisterRule, text: &[u8]) -> bool {
        let _ = (rule, text);
        false
    }

    /// Returns the registers that a signal interrupted, and the address where their program counter is saved, if the
    /// program counter is in the kernel's code that returns from signal handlers. The kernel's signal frame is then
    /// on top of the stack.
    #[doc(hidden)]
    fn interrupted<M: Memory>(
        registers: &RegisterSet<Self>,
        memory: &mut M,
    ) -> Option<(RegisterSet<Self>, Avma)> {
        let _ = (registers, memory);
        None
    }

    /// As [`Architecture::interrupted`], but recognizes that code by its row, when the row does not say where the
    /// registers are.
    #[doc(hidden)]
    fn interrupted_by_row<M: Memory>(
        row: &Row,
        registers: &RegisterSet<Self>,
        memory: &mut M,
    ) -> Option<(RegisterSet<Self>, Avma)> {
        let _ = (row, registers, memory);
        None
    }

    /// Returns the registers of the caller of code without rules, and the address that its program counter was read from, or 0: what the
    /// instructions up to the function's return have them be. The program counter is the raw return address.
    #[doc(hidden)]
    fn ahead<M: Memory>(
        registers: &RegisterSet<Self>,
        is_return: bool,
        memory: &mut M,
    ) -> Option<(RegisterSet<Self>, Avma)> {
        let _ = (registers, is_return, memory);
        None
    }

    /// As [`Architecture::ahead`], for a frame whose instructions contradict its rule: `Some(None)` if the caller cannot be read. `is_bare`: the rule is that of a function without frame; else
    /// it has the return address.
    #[doc(hidden)]
    fn correction<M: Memory>(
        registers: &RegisterSet<Self>,
        is_bare: bool,
        memory: &mut M,
    ) -> Option<Option<(RegisterSet<Self>, Avma)>> {
        let _ = (registers, is_bare, memory);
        None
    }

    /// Returns how far a frame that rules describe as one of a function without frame has left for the handler of an exception.
    #[doc(hidden)]
    fn landing<M: Memory>(registers: &RegisterSet<Self>, memory: &mut M) -> Option<Landing> {
        let _ = (registers, memory);
        None
    }

    /// Returns whether the instructions ahead leave for the handler of an exception with the registers as they are.
    #[doc(hidden)]
    fn lands_soon<M: Memory>(registers: &RegisterSet<Self>, memory: &mut M) -> bool {
        let _ = (registers, memory);
        false
    }

    /// Returns what the instructions from `begin`, the beginning of the function, to the program counter have left of its caller. `None` if they
    /// cannot be followed.
    #[doc(hidden)]
    fn origin<M: Memory>(begin: Avma, registers: &RegisterSet<Self>, memory: &mut M) -> Option<Origin<Self>> {
        let _ = (begin, registers, memory);
        None
    }

    /// Returns the state of the executing frame, if its code shows it. At the instructions that set up or remove a
    /// frame with a frame pointer, neither the frame pointer nor the stack pointer alone shows it.
    #[doc(hidden)]
    fn edge<M: Memory>(pc: Avma, memory: &mut M) -> Option<Edge> {
        let _ = (pc, memory);
        None
    }

    /// Returns the rest of the epilogue that the code at `pc` is in, if it only restores registers and returns.
    #[doc(hidden)]
    fn epilogue<M: Memory>(pc: Avma, memory: &mut M) -> Option<Epilogue> {
        let _ = (pc, memory);
        None
    }

    /// Returns the number of bytes by which the code at `pc` lowers the stack pointer before anything but pushing registers; 0 if it does
    /// something else first.
    #[doc(hidden)]
    fn prologue<M: Memory>(pc: Avma, memory: &mut M) -> u64 {
        let _ = (pc, memory);
        0
    }

    /// Returns whether a thread is about to run its first user instruction, right after the system call that created
    /// it. It has no caller, and the word on its stack is not a return address.
    #[doc(hidden)]
    fn begins_thread<M: Memory>(registers: &RegisterSet<Self>, memory: &mut M) -> bool {
        let _ = (registers, memory);
        false
    }

    /// Returns whether the code at a return address ends its thread, so that the frame has no caller: a start routine
    /// without rules.
    #[doc(hidden)]
    fn ends_thread<M: Memory>(pc: Avma, memory: &mut M) -> bool {
        let _ = (pc, memory);
        false
    }

    /// Returns the distance in bytes from the stack pointer up to the return address, if `pc` is the return address
    /// of the call in a stub that only makes room, calls and returns.
    #[doc(hidden)]
    fn trampoline<M: Memory>(pc: Avma, memory: &mut M) -> Option<i64> {
        let _ = (pc, memory);
        None
    }
}
