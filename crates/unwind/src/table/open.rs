//! Turns a sequence of states into rows: the open row, whose end is not reached yet, and the receiver of finished
//! rows.
//!
//! Consecutive equal states form one row. Running instructions is elsewhere (`machine`).

use core::ops::Range;

use super::state::State;

/// Receiver of rows.
pub(super) trait Rows {
    /// Minimum length of a row, in bytes. Shorter rows are not passed on.
    const SHORTEST: u64;

    /// Receives a row, with its state and its neighbours.
    fn row(&mut self, range: Range<u64>, states: Around);
}

/// State of a row and how it differs from its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// Growth of the CFA's offset at the row's start; 0 if it was not caused by a single instruction.
    pub(super) grown: i32,
    pub(super) here: State,
    /// Growth of the CFA's offset at the row's end; 0 if it is not caused by a single instruction, and at the
    /// function's end.
    pub(super) grows: i32,
    /// State of the next row; `None` at the function's end.
    pub(super) after: Option<State>,
}

/// The row whose end is not reached yet.
pub(super) struct Open {
    start: u64,
    /// See [`Around::grown`].
    grown: i32,
    pub(super) state: State,
}

impl Open {
    /// Opens the first row of a function, as if it followed a push.
    #[inline(always)]
    pub(super) fn new(start: u64, state: State) -> Self {
        Open { start, grown: state.change_from(state.popped()), state }
    }

    /// Ends the row at `location`, because the state changes to `next`.
    #[inline(always)]
    pub(super) fn close<R: Rows>(&mut self, next: State, location: u64, rows: &mut R) {
        let length = location - self.start;
        let grows = next.change_from(self.state);
        if length >= R::SHORTEST {
            let states = Around { grown: self.grown, here: self.state, grows, after: Some(next) };
            rows.row(self.start..location, states);
        }
        // Two changes at the same address: neither of them is the whole change.
        self.grown = if length == 0 { 0 } else { grows };
        self.start = location;
        self.state = next;
    }

    /// Emits the last row, up to `end`, at the end of the instructions. Returns `end`.
    #[inline(always)]
    pub(super) fn end<R: Rows>(mut self, state: State, location: u64, end: u64, rows: &mut R) -> u64 {
        if !state.says(self.state) && location < end {
            self.close(state, location, rows);
        }
        self.fail(end, rows)
    }

    /// Emits the last row, up to `location`, where it is still known to apply. Returns `location`.
    #[inline(always)]
    pub(super) fn fail<R: Rows>(self, location: u64, rows: &mut R) -> u64 {
        if location - self.start >= R::SHORTEST {
            let states = Around { grown: self.grown, here: self.state, grows: 0, after: None };
            rows.row(self.start..location, states);
        }
        location
    }
}
