//! Fast walk over a stack that is available as words: a few instructions per frame if the rules are of the usual
//! kind.
//!
//! Most frames are found by adding a number of words to the stack pointer and reading the return address below it.
//! The loop does only that: look up the return address, add, read, record the slot. The frame pointer is not tracked.
//! If a rule needs the frame pointer, the recorded frames show which of them saved it. Results equal those of the
//! [`Walker`](crate::walker::Walker) alone, whatever the cache holds.
//!
//! `course` has the loop and everything else that needs only words. `driver` adds the walker for the other frames,
//! and `trail` is for callers that need only the slots. Finding rules (`walk`) and remembering them (`cache`) are
//! elsewhere.

mod course;
mod driver;
mod linked;
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

/// Returns whether the fast walk supports an architecture: calls must push the return address, and words must have
/// the size of the window's.
#[inline(always)]
pub(crate) const fn serves<A: Architecture>() -> bool {
    A::LR.is_none() && A::WORD == 8
}

/// Position of a walk over words.
#[derive(Clone, Copy)]
struct Place {
    /// Program counter of the last frame found.
    pc: u64,
    /// Index of the word below that frame's stack pointer, which holds `pc` if it is a return address. Wraps below
    /// the first word.
    slot: usize,
    /// Packed rule of `pc` in the cache.
    bits: u64,
}
