//! Runs all call-frame instructions of a function once and hands out its rows in order.
//!
//! Equal states in a row are one row. Registers other than the stack pointer, the frame pointer and the return address
//! are passed over. Not here: which rows are worth keeping.

use core::ops::Range;

use super::code::Code;
use super::state::State;
use crate::cfi::{Encoding, Frames, Reader};
use crate::x86_64::{RBP, RSP};

/// How many states may be remembered at a time; as many as the decoder of single rows takes.
const MAX_REMEMBERED: usize = 32;
/// `DW_CFA_restore_extended`
const RESTORE_EXTENDED: u8 = 0x06;

/// What the functions of a CIE have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    /// How code addresses are written.
    pub(super) encoding: Encoding,
    /// The state at the start of its functions.
    pub(super) initial: State,
}

/// Where the rows go.
pub(super) trait Rows {
    /// The row `start..end`, not empty. `before` is the state of the row before; `after` that of the next row, `None` at
    /// the function's end.
    fn row(&mut self, start: u64, end: u64, before: State, state: State, after: Option<State>);
}

/// The row whose end was not reached yet.
struct Open {
    start: u64,
    state: State,
    before: State,
}

impl Open {
    /// Ends the row at `location` if the state has changed.
    #[inline(always)]
    fn advance<R: Rows>(&mut self, state: &mut State, location: u64, rows: &mut R) {
        if state.says(self.state) {
            return;
        }
        if self.start < location {
            rows.row(self.start, location, self.before, self.state, Some(*state));
            self.before = self.state;
        } else {
            // No instruction led here.
            self.before = *state;
        }
        self.start = location;
        self.state = *state;
        state.stay();
    }
}

/// A function's instructions.
#[derive(Clone)]
pub(super) struct Function<'a> {
    pub(super) frames: Frames<'a>,
    /// Stated addresses, end exclusive.
    pub(super) range: Range<u64>,
    /// Where in the section its instructions are.
    pub(super) code: Range<usize>,
}

/// The state while instructions run.
pub(super) struct Machine {
    state: State,
    /// Where the instructions have got to.
    location: u64,
    remembered: [State; MAX_REMEMBERED],
    depth: usize,
}

impl Machine {
    /// Ready for any number of functions.
    pub(super) fn new() -> Self {
        Machine { state: State::NOTHING, location: 0, remembered: [State::NOTHING; MAX_REMEMBERED], depth: 0 }
    }

    /// The state after the instructions of a CIE; `None` if they are damaged.
    pub(super) fn initial(&mut self, function: &Function<'_>, common: &Common) -> Option<State> {
        (self.state, self.location, self.depth) = (State::NOTHING, 0, 0);
        let mut code = function.code();
        while let Some(op) = code.byte() {
            // Nothing can be restored to what the CIE says before it has said it.
            if op >> 6 == 3 || op == RESTORE_EXTENDED {
                return None;
            }
            self.step(op, &mut code, function, common)?;
        }
        Some(self.state)
    }

    /// Gives the rows of a function to `rows`. What is returned is where they end: before the function's end if the
    /// instructions are damaged.
    #[inline(always)]
    pub(super) fn run<R: Rows>(&mut self, function: &Function<'_>, common: &Common, rows: &mut R) -> u64 {
        let Range { start, end } = function.range;
        (self.state, self.location, self.depth) = (common.initial, start, 0);
        let mut code = function.code();
        let mut open = Open { start, state: common.initial, before: common.initial.smaller() };
        let mut is_whole = true;
        while let Some(op) = code.byte() {
            if matches!(op, 0x40..=0x7f | 0x01..=0x04 | 0x1d) {
                open.advance(&mut self.state, self.location, rows);
            }
            if self.step(op, &mut code, function, common).is_none() {
                is_whole = false;
                break;
            }
            if self.location >= end {
                break;
            }
        }
        // Nothing is known from where the instructions failed.
        let end = if is_whole { end } else { self.location.min(end) };
        if is_whole {
            open.advance(&mut self.state, self.location, rows);
        }
        if open.start < end {
            rows.row(open.start, end, open.before, open.state, None);
        }
        end
    }

    /// Runs one instruction (DWARF 5 §6.4.2 and §7.24, and GNU's own). `None` if it is damaged.
    #[inline(always)]
    fn step(&mut self, op: u8, code: &mut Code<'_>, function: &Function<'_>, common: &Common) -> Option<()> {
        let low = u64::from(op & 0x3f);
        match op {
            // advance_loc, advance_loc1, advance_loc2
            0x40..=0x7f => self.advance(low, common),
            0x02 => {
                let delta = code.byte()?;
                self.advance(delta.into(), common)
            }
            0x03 => {
                let delta = u16::from_le_bytes(code.array()?);
                self.advance(delta.into(), common)
            }
            // offset
            0x80..=0xbf => {
                let offset = code.uleb()? as i64;
                self.state.saved(low, offset.wrapping_mul(common.data_alignment));
                Some(())
            }
            // restore
            0xc0..=0xff => {
                self.state.restore(low, common.initial);
                Some(())
            }
            // nop
            0x00 => Some(()),
            // def_cfa_offset
            0x0e => {
                let offset = code.uleb()? as i64;
                self.cfa_offset(offset)
            }
            _ => self.rare(op, code, function, common),
        }
    }

    #[inline(always)]
    fn advance(&mut self, delta: u64, common: &Common) -> Option<()> {
        self.location = self.location.checked_add(delta.checked_mul(common.code_alignment)?)?;
        Some(())
    }

    #[inline(always)]
    fn cfa_offset(&mut self, offset: i64) -> Option<()> {
        if !self.state.has_base() {
            return None;
        }
        self.state.set_offset(offset);
        Some(())
    }

    #[inline(never)]
    fn rare(&mut self, op: u8, code: &mut Code<'_>, function: &Function<'_>, common: &Common) -> Option<()> {
        let factored = |offset: i64| offset.wrapping_mul(common.data_alignment);
        match op {
            // set_loc
            0x01 => {
                let location = function.pointer(code, common)?;
                (location >= self.location).then(|| self.location = location)?;
            }
            // advance_loc4, MIPS_advance_loc8
            0x04 => self.advance(u32::from_le_bytes(code.array()?).into(), common)?,
            0x1d => self.advance(u64::from_le_bytes(code.array()?), common)?,
            RESTORE_EXTENDED => self.state.restore(code.uleb()?, common.initial),
            // remember_state, restore_state
            0x0a => {
                *self.remembered.get_mut(self.depth)? = self.state;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.state = self.remembered.get(self.depth)?.after_jump();
            }
            // def_cfa, def_cfa_sf
            0x0c | 0x12 => {
                let register = u16::try_from(code.uleb()?).ok()?;
                let offset = if op == 0x0c { code.uleb()? as i64 } else { factored(code.sleb()?) };
                self.state.set_base(register);
                self.state.set_offset(offset);
            }
            // def_cfa_register
            0x0d => {
                let register = u16::try_from(code.uleb()?).ok()?;
                self.state.has_base().then(|| self.state.set_base(register))?;
            }
            // def_cfa_expression
            0x0f => {
                let length = code.uleb()?;
                code.skip(length)?;
                self.state.set_no_base();
            }
            // def_cfa_offset_sf
            0x13 => {
                let offset = factored(code.sleb()?);
                self.cfa_offset(offset)?;
            }
            // GNU_args_size
            0x2e => code.uleb().map(|_| ())?,
            _ => self.register(op, code, common)?,
        }
        Some(())
    }

    /// Instructions that say where a register is.
    fn register(&mut self, op: u8, code: &mut Code<'_>, common: &Common) -> Option<()> {
        let factored = |offset: i64| offset.wrapping_mul(common.data_alignment);
        if !matches!(op, 0x05 | 0x07..=0x09 | 0x10 | 0x11 | 0x14..=0x16 | 0x2f) {
            return None;
        }
        let register = code.uleb()?;
        match op {
            // offset_extended, offset_extended_sf, GNU_negative_offset_extended
            0x05 => self.state.saved(register, factored(code.uleb()? as i64)),
            0x11 => self.state.saved(register, factored(code.sleb()?)),
            0x2f => self.state.saved(register, factored(code.uleb()? as i64).wrapping_neg()),
            // undefined
            0x07 => self.state.undefined(register),
            // same_value, which for the frame pointer is what holds where nothing is said
            0x08 if register == u64::from(RBP) => self.state.unsaid(register),
            0x08 => self.state.odd(register),
            // register
            0x09 => {
                u16::try_from(code.uleb()?).ok()?;
                self.state.odd(register);
            }
            // val_offset, val_offset_sf: the stack pointer is the CFA where nothing is said
            0x14 | 0x15 => {
                let offset = if op == 0x14 { code.uleb()? as i64 } else { factored(code.sleb()?) };
                match register == u64::from(RSP) && offset == 0 {
                    true => self.state.unsaid(register),
                    false => self.state.odd(register),
                }
            }
            // expression, val_expression
            _ => {
                let length = code.uleb()?;
                code.skip(length)?;
                self.state.odd(register);
            }
        }
        Some(())
    }
}

impl<'a> Function<'a> {
    fn code(&self) -> Code<'a> {
        Code(self.frames.bytes.get(self.code.clone()).unwrap_or_default())
    }

    /// The code address that comes next.
    fn pointer(&self, code: &mut Code<'_>, common: &Common) -> Option<u64> {
        let mut bases = self.frames.bases;
        bases.function = Some(self.range.start);
        let at = self.code.end.checked_sub(code.0.len())?;
        let mut reader = Reader::new(self.frames.bytes, at, self.frames.kind).up_to(self.code.end);
        let address = common.encoding.read(&mut reader, &bases).ok()?;
        code.skip((reader.position() - at) as u64)?;
        Some(address)
    }
}
