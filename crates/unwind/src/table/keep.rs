//! Selection of the rows that a table keeps.

use core::ops::Range;

use super::open::Around;
use crate::isa::Isa;

/// Decides which rows to keep. Lookups in a row that is not kept return the row before it.
pub(super) trait Keep {
    /// Whether deciding is cheaper than computing the rule of a row.
    const IS_EASY: bool;
    /// Minimum length of a kept row, in bytes.
    const SHORTEST: u64;

    /// Returns whether to keep a row within a function.
    fn row(&mut self, range: Range<u64>, states: Around) -> bool;
    /// Returns whether to keep a row of another architecture, or code between its functions.
    fn other(&mut self, _: Isa, _: Range<u64>) -> bool {
        true
    }
    /// Returns whether to keep code between functions.
    fn gap(&mut self, range: Range<u64>) -> bool;
}

/// Keeps all rows.
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

/// Keeps rows that are long enough to hold a call, as far as that can be decided without the code. A call has at
/// least two bytes. Within a prologue or an epilogue, where the stack grows or shrinks row by row, a row also holds
/// the instruction that ends it.
pub(super) struct ByLength;

/// Length of `call *%rax`
pub(super) const SHORTEST_CALL: u64 = 2;
/// Length of `push %rax`, `pop %rax`
const PUSH: u64 = 1;
/// Length of `sub $8,%rsp`, `lea`
const SUB: u64 = 4;
/// Length of `sub $128,%rsp`
const SUB_LONG: u64 = 7;
/// Length of `mov %rsp,%rbp`
const MOVE: u64 = 3;
/// Alignment of functions. Functions at other addresses have no padding before them.
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

/// Returns the length of the shortest instruction that can have ended a row; 0 if there may be none.
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
