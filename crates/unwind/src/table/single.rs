//! The rule for one address, decoded no further than to there: what a walk asks where it remembers nothing.
//!
//! Made for what compilers write. All else is `None` here and left to the decoder of full rows, which comes to the same
//! rule for whatever is decoded here.

use super::code::Code;
use super::heads::{Head, Heads};
use super::layout::rule_of;
use super::machine::{Common, LAST_ADDRESS};
use super::state::State;
use crate::cfi::Frames;
use crate::rule::{Kind, Rule};

/// States that are remembered at a time: compilers do with one or two.
const REMEMBERED: usize = 4;

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
    let code = Code::new(frames.bytes.get(code)?);
    let state = state_at(code, &cie.common, pc - begin)?;
    rule_of(state.rule()).filter(|rule| rule.kind != Kind::Odd)
}

/// The state so many bytes into a function.
fn state_at(mut code: Code<'_>, common: &Common, mut left: u64) -> Option<State> {
    let mut state = common.initial;
    let mut remembered = [State::NOTHING; REMEMBERED];
    let mut depth = 0;
    while let Some(op) = code.byte() {
        let low = op & 0x3f;
        match op {
            0x40..=0x7f => {
                let delta = u64::from(low) * common.code_alignment;
                if delta > left {
                    return Some(state);
                }
                left -= delta;
                // After most instructions that have rows of their own the stack is larger or smaller.
                if let Some(offset) = code.small_offset() {
                    state = state.with_offset(offset.into())?;
                    // ... because a register was pushed.
                    if let Some((register, words)) = code.small_saved() {
                        state.saved_if_tracked(register, i64::from(words), common);
                    }
                }
            }
            0x80..=0xbf => {
                let words = code.uleb()?;
                state.saved_if_tracked(low, words as i64, common);
            }
            0xc0..=0xff => state.restore(low.into(), common.initial),
            0x00 => {}
            // advance_loc1, advance_loc2, advance_loc4
            0x02..=0x04 => {
                let units = match op {
                    0x02 => code.byte()?.into(),
                    0x03 => u16::from_le_bytes(code.array()?).into(),
                    _ => u32::from_le_bytes(code.array()?).into(),
                };
                // Below 2^48, as alignments are below 2^16.
                let delta = u64::wrapping_mul(units, common.code_alignment);
                if delta > left {
                    return Some(state);
                }
                left -= delta;
            }
            // remember_state, restore_state
            0x0a => {
                *remembered.get_mut(depth)? = state;
                depth += 1;
            }
            0x0b => {
                depth = depth.checked_sub(1)?;
                state = *remembered.get(depth)?;
            }
            // def_cfa, def_cfa_register, def_cfa_offset
            0x0c => {
                state.set_base(code.byte().filter(|&register| register < 0x80)?.into());
                state = state.with_offset(code.uleb()? as i64)?;
            }
            0x0d => {
                let register = code.byte().filter(|&register| register < 0x80 && state.has_base())?;
                state.set_base(register.into());
            }
            0x0e => state = state.with_offset(code.uleb()? as i64)?,
            // GNU_args_size
            0x2e => code.uleb().map(|_| ())?,
            _ => return None,
        }
    }
    Some(state)
}

impl State {
    /// A register is saved so many units below the CFA.
    #[inline(always)]
    fn saved_if_tracked(&mut self, register: u8, units: i64, common: &Common) {
        if State::tracks(register) {
            self.saved(register.into(), units.wrapping_mul(common.data_alignment));
        }
    }
}
