//! The walk over a stack that is at hand as words: a few instructions a frame where rules are of the usual kind.
//!
//! Most frames are found by adding a number of words to the stack pointer and reading the return address below it. The
//! loop does nothing else: it looks the return address up, adds, reads, and keeps where it read. The frame pointer
//! is not followed; where a rule needs it, the frames just passed say which of them saved it. Results are those of the
//! [`Walker`](crate::walker::Walker) alone, whatever the cache knows.
//!
//! The loop and what else can be done with words alone is in `course`; `driver` brings in the walker for what takes
//! more, and `trail` is for those who want no more than the loop yields. Not here: how rules are found (`walk`)
//! and remembered (`cache`).

mod course;
mod driver;
mod slots;
mod trail;

pub(crate) use driver::walk as walk_in_place;
pub use slots::ReturnSlots;
pub use trail::trace;
pub(crate) use trail::walk;

use crate::architecture::Architecture;
use crate::cache::{LAST_BITS, PACKED_BITS};

const LARGE: usize = 1 << LAST_BITS;
const MIDDLE: usize = 1 << (LAST_BITS - 2);
const SMALL: usize = 1 << PACKED_BITS;

/// Whether this walk is one for an architecture: calls push the return address, and a word is one of the window's.
#[inline(always)]
pub(crate) const fn serves<A: Architecture>() -> bool {
    A::LR.is_none() && A::WORD == 8
}

/// Where a walk is that goes by words.
#[derive(Clone, Copy)]
struct Place {
    /// The program counter of the frame that was found last.
    pc: u64,
    /// The word below its stack pointer; for return addresses that is where they are. Wraps below the first word.
    slot: usize,
    /// What the cache says of `pc`.
    bits: u64,
}
