//! The rule for one address, from the instructions up to it: used by walks when the cache has no rule.
//!
//! Invariant: a rule found here equals the one from the decoder of full rows. Rows that no compact rule fits, and
//! damaged ones, give `None` and are left to that decoder.

use core::ops::Range;

use super::heads::{Head, Heads};
use super::machine::{Function, LAST_ADDRESS, Machine};
use super::open::{Around, Rows};
use super::state::State;
use crate::cfi::Frames;
use crate::rule::Rule;

/// Returns the rule at `pc` from the entry at `offset`, if that entry covers `pc`. `file` is the number of the file
/// with the frames.
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
    // Pretend that the function ends after that address, so that no later instruction is run.
    let function = Function { frames, range: begin..pc + 1, code };
    let mut last = LastRow(None);
    let done = Machine::new().run(&function, &cie.common, &mut last);
    last.0.filter(|_| done > pc)?.compact()
}

/// Keeps the last row.
struct LastRow(Option<State>);

impl Rows for LastRow {
    const SHORTEST: u64 = 1;

    #[inline(always)]
    fn row(&mut self, _: Range<u64>, states: Around) {
        self.0 = Some(states.here);
    }
}
