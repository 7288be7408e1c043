//! Which rows of a function a table keeps.

use core::ops::Range;

use super::open::Around;
use crate::isa::Isa;

/// Decides which rows are worth keeping. A row that is not kept answers as the one before it.
pub(super) trait Keep {
    /// Whether it is easier to decide than to tell what a row says.
    const IS_EASY: bool;
    /// Shorter rows are not kept.
    const SHORTEST: u64;

    /// A row within a function.
    fn row(&mut self, range: Range<u64>, states: Around) -> bool;
    /// A row of another architecture, or code between its functions.
    fn other(&mut self, _: Isa, _: Range<u64>) -> bool {
        true
    }
    /// Code between functions.
    fn gap(&mut self, range: Range<u64>) -> bool;
}

/// Keeps all.
pub(super) struct All;

impl Keep for All {
    const IS_EASY: bool = true;
    const SHORTEST: u64 = 1;

    #[inline(always)]
    fn row(&mut self, _: Range<u64>, _: Around) -> bool {
        true
    }

    fn gap(&mut self, _: Range<u64>) -> bool {
        true
    }
}

/// Keeps what is long enough to hold a call, as far as that can be told without the code: a call has at least two bytes,
/// and within a prologue or an epilogue, where the stack grows or shrinks row by row, a row also has the instruction
/// that ends it.
pub(super) struct ByLength;

/// `call *%rax`
pub(super) const SHORTEST_CALL: u64 = 2;
/// `push %rax`, `pop %rax`
const PUSH: u64 = 1;
/// `sub $8,%rsp`, `lea`
const SUB: u64 = 4;
/// `sub $128,%rsp`
const SUB_LONG: u64 = 7;
/// `mov %rsp,%rbp`
const MOVE: u64 = 3;
/// Functions begin at multiples of this, or compilers do not fill what is before them.
const ALIGNMENT: u64 = 16;

impl Keep for ByLength {
    const IS_EASY: bool = true;
    const SHORTEST: u64 = SHORTEST_CALL;

    #[inline(always)]
    fn row(&mut self, range: Range<u64>, states: Around) -> bool {
        let length = range.end - range.start;
        if length >= SHORTEST_CALL + SUB_LONG {
            return true;
        }
        length >= SHORTEST_CALL + shortest_end(states)
    }

    fn gap(&mut self, range: Range<u64>) -> bool {
        range.end - range.start >= ALIGNMENT || !range.end.is_multiple_of(ALIGNMENT)
    }
}

/// The length of the shortest instruction that can have ended a row; 0 if it may have been none.
#[inline(always)]
fn shortest_end(Around { grown, here, grows, after }: Around) -> u64 {
    if grown > 0 {
        match grows {
            8 => PUSH,
            9..=128 => SUB,
            129.. => SUB_LONG,
            _ if after.is_some_and(|after| after.is_moved_from(here)) => MOVE,
            _ => 0,
        }
    } else if grown < 0 && grows == -8 {
        PUSH
    } else {
        0
    }
}
