//! The rule for one address, of the instructions up to there: what a walk asks where it remembers nothing.
//!
//! Invariant: what is found here is what the decoder of full rows comes to. What rules can't say, and what is damaged, is
//! `None` here and left to that.

use core::ops::Range;

use super::heads::{Head, Heads};
use super::machine::{Function, LAST_ADDRESS, Machine};
use super::open::{Around, Rows};
use super::state::State;
use crate::cfi::Frames;
use crate::rule::Rule;

/// The rule that holds at `pc`, by the entry at `offset`, if that is the entry of the function there. `file` stands for
/// the file that the frames are of.
pub(crate) fn rule_at(
    frames: &Frames<'_>,
    heads: &mut Heads,
    (file, offset): (u32, usize),
    pc: u64,
) -> Option<Rule> {
    let Head { begin, end, code } = heads.head(frames, file, offset)?;
    let cie = heads.cie();
    if pc < begin || pc >= end || end > LAST_ADDRESS || cie.is_signal {
        return None;
    }
    // As if the function ended behind that address, so that no instruction beyond is run.
    let function = Function { frames, range: begin..pc + 1, code };
    let mut last = LastRow(None);
    let done = Machine::new().run(&function, &cie.common, &mut last);
    last.0.filter(|_| done > pc)?.compact()
}

/// Keeps the last of the rows.
struct LastRow(Option<State>);

impl Rows for LastRow {
    const SHORTEST: u64 = 1;

    #[inline(always)]
    fn row(&mut self, _: Range<u64>, states: Around) {
        self.0 = Some(states.here);
    }
}
