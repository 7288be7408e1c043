//! 64-bit ARM: its instructions, its registers as ptrace hands them out, and how calls and signals change its stack.

mod instruction;
mod sequence;
mod shadow;

use plumb_unwind::Registers;

pub use instruction::{Kind, kind};
pub use sequence::sequence_ends;
pub use shadow::entry;

/// Number of words of the general registers in `PTRACE_GETREGSET` (`struct user_pt_regs`), and the place of `pc`.
pub const WORDS: usize = 34;
pub const PC_WORD: usize = 32;

/// `brk #0`.
pub const BREAKPOINT: &[u8] = &[0, 0, 0x20, 0xd4];
/// Distance from a breakpoint to the program counter after it.
pub const AFTER_BREAKPOINT: u64 = 0;

/// Register with the number of a system call: `x8`.
pub const SYSTEM_CALL: u16 = 8;
const X0: u16 = 0;
const X30: u16 = 30;

/// Number of instructions of a program from tests/programs that are stepped: an emulated machine takes 1 ms for each.
pub const CAP_OF_OWN: u64 = 30_000;
/// Number of instructions of a program that handles exceptions: it has reached some handlers.
pub const CAP_OF_LANDING: u64 = 60_000;
/// Function from which a large one of them is stepped.
pub const BEGIN_OF_OWN: Option<&str> = Some("main");
/// Number of instructions of an installed program that are stepped from a function on.
pub const CAP: u64 = 20_000;
/// Number of instructions that are stepped from the first one, most of them in the dynamic linker.
pub const CAP_FROM_FIRST: u64 = 20_000;

/// `mov x8, #139; svc #0`: the kernel's code that handlers return to.
const SIGRETURN: u64 = 0xd400_0001_d280_1168;

/// Returns whether a handler of this signal is about to run.
pub fn enters_handler(signal: i32, registers: &Registers, read: impl Fn(u64) -> Option<u64>) -> bool {
    registers.get(X0) == Some(signal as u64) && registers.get(X30).and_then(read) == Some(SIGRETURN)
}
