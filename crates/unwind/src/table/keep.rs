//! Which rows of a function a table keeps.

use super::state::State;

/// Decides which rows are worth keeping. A row that is not kept answers as the one before it.
pub(super) trait Keep {
    /// A row within a function, with the states before and after; `None` at the function's end.
    fn row(&mut self, start: u64, end: u64, before: State, state: State, after: Option<State>) -> bool;
    /// Code between functions.
    fn gap(&mut self, start: u64, end: u64) -> bool;
}

/// Keeps all.
pub(super) struct All;

impl Keep for All {
    #[inline(always)]
    fn row(&mut self, _: u64, _: u64, _: State, _: State, _: Option<State>) -> bool {
        true
    }

    fn gap(&mut self, _: u64, _: u64) -> bool {
        true
    }
}

/// Keeps what is long enough to hold a call, as far as that can be told without the code: a call has at least two bytes,
/// and within a prologue or an epilogue, where the stack grows or shrinks row by row, a row also has the instruction
/// that ends it.
pub(super) struct ByLength;

/// `call *%rax`
const SHORTEST_CALL: u64 = 2;
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
    #[inline(always)]
    fn row(&mut self, start: u64, end: u64, before: State, state: State, after: Option<State>) -> bool {
        let length = end - start;
        if length >= SHORTEST_CALL + SUB_LONG {
            return true;
        }
        length >= SHORTEST_CALL && length >= SHORTEST_CALL + shortest_end(before, state, after)
    }

    fn gap(&mut self, start: u64, end: u64) -> bool {
        end - start >= ALIGNMENT || !end.is_multiple_of(ALIGNMENT)
    }
}

/// The length of the shortest instruction that can have made `after` of `state`; 0 if it may have been none.
#[inline]
fn shortest_end(before: State, state: State, after: Option<State>) -> u64 {
    let Some(after) = after.filter(|after| !after.jumped() && !state.jumped()) else { return 0 };
    if !before.same_base(state) {
        return 0;
    }
    let led_here = i64::from(state.offset()) - i64::from(before.offset());
    let leads_on = i64::from(after.offset()) - i64::from(state.offset());
    if !state.same_base(after) {
        return if led_here > 0 && leads_on == 0 && state.on_sp() { MOVE } else { 0 };
    }
    match (led_here, leads_on) {
        (1.., 8) | (..=-1, -8) => PUSH,
        (1.., 9..=128) => SUB,
        (1.., 129..) => SUB_LONG,
        _ => 0,
    }
}
