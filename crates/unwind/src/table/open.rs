//! Rows one after the other: the one that is open, whose end is not reached yet, and who takes those that are not.
//!
//! Equal states in a row are one row. Not here: what instructions say (`machine`).

use core::ops::Range;

use super::state::State;

/// Where the rows go.
pub(super) trait Rows {
    /// Shorter rows are not asked for.
    const SHORTEST: u64;

    /// A row, and what there is before and after it.
    fn row(&mut self, range: Range<u64>, states: Around);
}

/// A row's state and how it differs from its neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    /// By how much the offset of the CFA grew at its beginning; 0 if no one instruction did that.
    pub(super) grown: i32,
    pub(super) here: State,
    /// By how much it grows at its end; 0 if no one instruction does that, and at the function's end.
    pub(super) grows: i32,
    /// `None` at the function's end.
    pub(super) after: Option<State>,
}

/// The row whose end was not reached yet.
pub(super) struct Open {
    start: u64,
    /// See [`Around::grown`].
    grown: i32,
    pub(super) state: State,
}

impl Open {
    /// The first row of a function, which begins as if something had been pushed.
    #[inline(always)]
    pub(super) fn new(start: u64, state: State) -> Self {
        Open { start, grown: state.change_from(state.popped()), state }
    }

    /// Ends the row at `location`, because `next` is something else.
    #[inline(always)]
    pub(super) fn close<R: Rows>(&mut self, next: State, location: u64, rows: &mut R) {
        let length = location - self.start;
        let grows = next.change_from(self.state);
        if length >= R::SHORTEST {
            let states = Around { grown: self.grown, here: self.state, grows, after: Some(next) };
            rows.row(self.start..location, states);
        }
        // Where two changes are at one place, neither of them is all.
        self.grown = if length == 0 { 0 } else { grows };
        self.start = location;
        self.state = next;
    }

    /// Gives the last row, up to `end`, where the instructions end.
    #[inline(always)]
    pub(super) fn end<R: Rows>(mut self, state: State, location: u64, end: u64, rows: &mut R) -> u64 {
        if !state.says(self.state) && location < end {
            self.close(state, location, rows);
        }
        self.fail(end, rows)
    }

    /// Gives the last row, up to where it is known to hold. What is returned is that.
    #[inline(always)]
    pub(super) fn fail<R: Rows>(self, location: u64, rows: &mut R) -> u64 {
        if location - self.start >= R::SHORTEST {
            let states = Around { grown: self.grown, here: self.state, grows: 0, after: None };
            rows.row(self.start..location, states);
        }
        location
    }
}
