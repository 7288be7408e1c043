//! The rule for one address, decoded no further than to there: what a walk asks where it remembers nothing.
//!
//! Made for what compilers write. All else is `None` here and left to the decoder of full rows, which comes to the same
//! rule for whatever is decoded here.

use super::code::Code;
use super::heads::{Head, Heads};
use super::machine::LAST_ADDRESS;
use super::state::State;
use crate::cfi::Frames;
use crate::rule::Rule;

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
    let initial = cie.common.initial;
    if cie.common.code_alignment != 1 || cie.common.data_alignment != -8 || !initial.has_base() {
        return None;
    }
    let remembered = [State::NOTHING; REMEMBERED];
    let steps = Steps { left: pc - begin, state: initial, initial, remembered, depth: 0 };
    steps.run(frames.bytes.get(code)?)?.compact()
}

/// Instructions of a function being run.
#[derive(Clone)]
struct Steps {
    /// Bytes from the location to the address that is asked for.
    left: u64,
    /// What holds at the location. It has a base all the time.
    state: State,
    /// What its CIE says.
    initial: State,
    remembered: [State; REMEMBERED],
    depth: usize,
}

/// Whether a `def_cfa_offset` comes, with a number of one byte.
#[inline(always)]
fn is_offset(next: u32) -> bool {
    next & 0x80ff == 0x000e
}

/// Whether an `advance_loc` and such a `def_cfa_offset` come twice.
#[inline(always)]
fn is_two_steps(eight: u64) -> bool {
    eight & 0x80ff_c080_ffc0 == 0x000e_4000_0e40
}

/// The same with a number of two bytes.
#[inline(always)]
fn is_long_offset(next: u32) -> bool {
    next & 0x80_80ff == 0x00_800e
}

/// Whether an `offset` comes, with a number of one byte.
#[inline(always)]
fn is_saved(next: u32) -> bool {
    next & 0x80c0 == 0x0080
}

impl Steps {
    /// Runs the instructions up to the address. Looks at eight bytes at a time; what is left where there are fewer, and
    /// what is rare, is done by [`Steps::step`].
    #[inline(always)]
    fn run(mut self, mut rest: &[u8]) -> Option<State> {
        // In local variables, which the compiler keeps in registers.
        let (mut state, mut left) = (self.state, self.left);
        while let Some(&bytes) = rest.first_chunk() {
            let eight = u64::from_le_bytes(bytes);
            let (first, next) = (eight as u8, (eight >> 8) as u32);
            if is_two_steps(eight) {
                // Epilogues: the stack grows smaller step by step.
                let delta = (eight & 0x3f) + (eight >> 24 & 0x3f);
                if delta <= left {
                    left -= delta;
                    state.set_near_offset((eight >> 32) as u32);
                    rest = rest.get(6..)?;
                    continue;
                }
            }
            if first & 0xc0 == 0x40 {
                let delta = eight & 0x3f;
                if delta > left {
                    return Some(state);
                }
                left -= delta;
                // After most instructions that begin a row the stack is larger or smaller.
                if is_offset(next) {
                    state.set_near_offset(next);
                    rest = rest.get(3..)?;
                    // A prologue says next which register was pushed.
                    if is_saved(next >> 16) {
                        state.saved_near(next >> 16);
                        rest = rest.get(2..)?;
                    }
                } else {
                    rest = rest.get(1..)?;
                }
            } else if is_offset(eight as u32) {
                state.set_near_offset(eight as u32);
                rest = rest.get(2..)?;
            } else if is_long_offset(eight as u32) {
                state.set_long_offset(next);
                rest = rest.get(3..)?;
            } else if first == 0x0b {
                self.depth = self.depth.checked_sub(1)?;
                state = *self.remembered.get(self.depth)?;
                rest = rest.get(1..)?;
            } else if first == 0x0a {
                *self.remembered.get_mut(self.depth)? = state;
                self.depth += 1;
                rest = rest.get(1..)?;
            } else if first == 0x02 || first == 0x03 {
                // advance_loc1, advance_loc2
                let delta = u64::from(next & if first == 0x02 { 0xff } else { 0xffff });
                if delta > left {
                    return Some(state);
                }
                left -= delta;
                rest = rest.get(usize::from(first)..)?;
            } else if is_saved(eight as u32) {
                state.saved_near(eight as u32);
                rest = rest.get(2..)?;
            } else if first >= 0xc0 {
                state.restore((first & 0x3f).into(), self.initial);
                rest = rest.get(1..)?;
            } else {
                (self.state, self.left) = (state, left);
                let step = self.clone().step(rest)?;
                if step.2 {
                    return Some(step.0.state);
                }
                (self, rest) = (step.0, step.1);
                (state, left) = (self.state, self.left);
            }
        }
        (self.state, self.left) = (state, left);
        self.finish(rest)
    }

    /// The last few bytes.
    #[inline(never)]
    fn finish(mut self, mut rest: &[u8]) -> Option<State> {
        let mut is_there = false;
        while !rest.is_empty() && !is_there {
            (self, rest, is_there) = self.step(rest)?;
        }
        Some(self.state)
    }

    /// One instruction. Also returned is what is left, and whether the address was reached.
    #[inline(never)]
    fn step(mut self, rest: &[u8]) -> Option<(Self, &[u8], bool)> {
        let mut code = Code::new(rest);
        let op = code.byte()?;
        let delta = match op {
            0x00 => 0,
            0x02 => code.byte()?.into(),
            0x03 => u16::from_le_bytes(code.array()?).into(),
            0x04 => u32::from_le_bytes(code.array()?).into(),
            0x40..=0x7f => u64::from(op & 0x3f),
            _ => {
                self.define(op, &mut code)?;
                0
            }
        };
        if delta > self.left {
            return Some((self, rest, true));
        }
        self.left -= delta;
        Some((self, code.rest(), false))
    }

    #[inline(always)]
    fn remember(&mut self) -> Option<()> {
        *self.remembered.get_mut(self.depth)? = self.state;
        self.depth += 1;
        Some(())
    }

    #[inline(always)]
    fn recall(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        self.state = *self.remembered.get(self.depth)?;
        Some(())
    }

    /// An instruction that changes the state.
    #[inline(always)]
    fn define(&mut self, op: u8, code: &mut Code<'_>) -> Option<()> {
        match op {
            0x80..=0xbf => {
                let units = code.uleb()? as i64;
                self.state.saved((op & 0x3f).into(), units.wrapping_mul(-8));
            }
            0xc0..=0xff => self.state.restore((op & 0x3f).into(), self.initial),
            0x0a => self.remember()?,
            0x0b => self.recall()?,
            // def_cfa, def_cfa_register, def_cfa_offset
            0x0c => {
                self.state.set_base(code.byte().filter(|&register| register < 0x80)?.into());
                self.state = self.state.with_offset(code.uleb()? as i64)?;
            }
            0x0d => self.state.set_base(code.byte().filter(|&register| register < 0x80)?.into()),
            0x0e => self.state = self.state.with_offset(code.uleb()? as i64)?,
            // GNU_args_size
            0x2e => code.uleb().map(|_| ())?,
            _ => return None,
        }
        Some(())
    }
}

impl State {
    /// The offset of a `def_cfa_offset` whose number is the second of these bytes.
    #[inline(always)]
    fn set_near_offset(&mut self, bytes: u32) {
        self.set_offset(bytes >> 8 & 0x7f);
    }

    /// The same where the number is the second and the third.
    #[inline(always)]
    fn set_long_offset(&mut self, bytes: u32) {
        self.set_offset(bytes & 0x7f | bytes >> 1 & 0x3f80);
    }

    /// An `offset` in two bytes: a register is saved so many words below the CFA.
    #[inline(always)]
    fn saved_near(&mut self, bytes: u32) {
        let register = bytes as u8 & 0x3f;
        if State::tracks(register) {
            self.saved(register.into(), -8 * i64::from(bytes >> 8 & 0x7f));
        }
    }
}
