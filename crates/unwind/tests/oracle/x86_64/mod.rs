//! x86_64: its instructions, its registers as ptrace hands them out, and how calls and signals change its stack.

mod instruction;
mod shadow;

use plumb_unwind::{Architecture, Native, Registers};

pub use instruction::{Kind, kind};
pub use shadow::entry;

/// Number of words of the general registers in `PTRACE_GETREGSET` (`struct user_regs_struct`), and the place of `rip`.
pub const WORDS: usize = 27;
pub const PC_WORD: usize = 16;

/// `int3`.
pub const BREAKPOINT: &[u8] = &[0xcc];
/// Distance from a breakpoint to the program counter after it.
pub const AFTER_BREAKPOINT: u64 = 1;

/// Register with the number of a system call: `rax`.
pub const SYSTEM_CALL: u16 = 0;
const RDX: u16 = 1;
const RDI: u16 = 5;

/// Number of instructions of a program from tests/programs that are stepped.
pub const CAP_OF_OWN: u64 = u64::MAX;
/// Number of instructions of a program that handles exceptions.
pub const CAP_OF_LANDING: u64 = u64::MAX;
/// Function from which a large one of them is stepped: all of it.
pub const BEGIN_OF_OWN: Option<&str> = None;
/// Number of instructions of an installed program that are stepped from a function on.
pub const CAP: u64 = 250_000;
/// Number of instructions that are stepped from the first one, most of them in the dynamic linker.
pub const CAP_FROM_FIRST: u64 = 500_000;

/// Returns whether a handler of this signal is about to run. It is entered with the signal's number, and a pointer to the
/// context, which is above its return address.
pub fn enters_handler(signal: i32, registers: &Registers, _read: impl Fn(u64) -> Option<u64>) -> bool {
    let context = registers.get(Native::SP).map(|sp| sp + 8);
    registers.get(RDI) == Some(signal as u64) && registers.get(RDX) == context
}

/// Returns where to stop next if the instruction at `pc` must not be stepped alone: no instruction is like that.
pub fn sequence_ends(_kind: Kind, _pc: u64, _read: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
    Vec::new()
}
