//! Runs all call-frame instructions of a function once and yields its rows in order.
//!
//! Consecutive equal states form one row. Registers other than the stack pointer, the frame pointer and the return
//! address are ignored. Selecting the rows to keep is elsewhere.

use core::ops::Range;

use super::code::Code;
use super::open::{Open, Rows};
use super::state::State;
use crate::cfi::{Encoding, Frames, Reader};
use crate::x86_64::{RBP, RSP};

/// Maximum depth of `DW_CFA_remember_state`, as in the decoder of single rows.
const MAX_REMEMBERED: usize = 32;
/// `DW_CFA_restore_extended`
const RESTORE_EXTENDED: u8 = 0x06;

/// Properties shared by the functions of a CIE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    /// Encoding of code addresses.
    pub(super) encoding: Encoding,
    /// State at the start of each function.
    pub(super) initial: State,
}

/// The instructions of a function.
#[derive(Clone)]
pub(super) struct Function<'a> {
    pub(super) frames: &'a Frames<'a>,
    /// Stated addresses, end exclusive; at most [`LAST_ADDRESS`].
    pub(super) range: Range<u64>,
    /// Offsets of the instructions in the section.
    pub(super) code: Range<usize>,
}

/// Functions beyond this address are ignored, so that no short advance overflows.
pub(super) const LAST_ADDRESS: u64 = u64::MAX >> 1;
/// Maximum code alignment factor.
pub(super) const MAX_ALIGNMENT: u64 = 1 << 16;

/// Runs instructions. Holds the stack of remembered states.
pub(super) struct Machine {
    remembered: [State; MAX_REMEMBERED],
    depth: usize,
}

/// Effect of a rare instruction.
enum Effect {
    State(State),
    /// Advances to this address.
    Location(u64),
}

impl Machine {
    /// Creates a machine that can run any number of functions.
    pub(super) fn new() -> Self {
        Machine { remembered: [State::NOTHING; MAX_REMEMBERED], depth: 0 }
    }

    /// Returns the state after the instructions of a CIE; `None` if they are damaged.
    pub(super) fn initial(&mut self, function: &Function<'_>, common: &Common) -> Option<State> {
        self.depth = 0;
        let mut state = State::NOTHING;
        let mut code = function.code();
        while let Some(op) = code.byte() {
            match op {
                // A CIE's own instructions cannot restore the CIE's state.
                0xc0..=0xff | RESTORE_EXTENDED => return None,
                0x00 | 0x40..=0x7f => {}
                0x02 => code.skip(1)?,
                0x03 => code.skip(2)?,
                0x04 => code.skip(4)?,
                0x0e => state = state.with_offset(code.uleb()? as i64)?,
                0x80..=0xbf => {
                    let offset = common.factored(code.uleb()? as i64);
                    state.saved(u64::from(op & 0x3f), offset);
                }
                _ => {
                    match self.rare(op, state, &mut code, function, common)? {
                        Effect::State(new) => state = new,
                        // The resulting location would depend on the function.
                        Effect::Location(_) => return None,
                    }
                }
            }
        }
        // A leftover remembered state could be recalled by a function, or would leave it less room.
        (self.depth == 0).then_some(state)
    }

    /// Passes the rows of a function to `rows`. Returns the address where they end: before the function's end if the
    /// instructions are damaged. (Instructions: DWARF 5 §6.4.2 and §7.24, and GNU extensions.) Frequent instructions
    /// are handled here, the others in `slow` and `rare`. All state is in local variables, which the compiler keeps
    /// in registers.
    pub(super) fn run<R: Rows>(&mut self, function: &Function<'_>, common: &Common, rows: &mut R) -> u64 {
        self.depth = 0;
        let (mut location, mut state) = (function.range.start, common.initial);
        let mut open = Open::new(location, state);
        let end = function.range.end;
        let mut code = function.code();
        while let Some(op) = code.byte() {
            let low = op & 0x3f;
            let delta = if op < 0x40 {
                if op == 0x0e {
                    let new = code.uleb().and_then(|offset| state.with_offset(offset as i64));
                    let Some(new) = new else { return open.fail(location, rows) };
                    state = new;
                    continue;
                }
                if op == 0 {
                    continue;
                }
                // Pass a copy, because with a reference to `code` itself the compiler could not keep it in registers.
                let mut rest = code.clone();
                let effect = self.slow(op, state, location, &mut rest, function, common);
                code = rest;
                match effect {
                    Some(Effect::State(new)) => {
                        state = new;
                        continue;
                    }
                    Some(Effect::Location(new)) => new - location,
                    None => return open.fail(location, rows),
                }
            } else if op < 0x80 {
                u64::from(low) * common.code_alignment
            } else if op < 0xc0 {
                let Some(offset) = code.uleb() else { return open.fail(location, rows) };
                if State::tracks(low) {
                    state.saved(low.into(), common.factored(offset as i64));
                }
                continue;
            } else {
                state.restore(low.into(), common.initial);
                continue;
            };
            if !state.says(open.state) {
                open.close(state, location, rows);
                state = state.settled();
            }
            location += delta;
            if location >= end {
                break;
            }
        }
        open.end(state, location, end, rows)
    }

    /// Runs an infrequent instruction; `None` if it is damaged.
    #[inline(never)]
    fn slow(
        &mut self,
        op: u8,
        state: State,
        location: u64,
        code: &mut Code<'_>,
        function: &Function<'_>,
        common: &Common,
    ) -> Option<Effect> {
        // The product is at most 2^48, so adding it to an address below LAST_ADDRESS does not overflow.
        let advanced = |delta: u64| {
            Some(Effect::Location(location.checked_add(delta.checked_mul(common.code_alignment)?)?))
        };
        match op {
            // advance_loc1, advance_loc2, advance_loc4, MIPS_advance_loc8
            0x02 => advanced(code.byte()?.into()),
            0x03 => advanced(u16::from_le_bytes(code.array()?).into()),
            0x04 => advanced(u32::from_le_bytes(code.array()?).into()),
            0x1d => advanced(u64::from_le_bytes(code.array()?)),
            _ => match self.rare(op, state, code, function, common)? {
                Effect::Location(new) if new < location => None,
                effect => Some(effect),
            },
        }
    }

    #[inline(never)]
    fn rare(
        &mut self,
        op: u8,
        mut state: State,
        code: &mut Code<'_>,
        function: &Function<'_>,
        common: &Common,
    ) -> Option<Effect> {
        match op {
            // set_loc
            0x01 => return function.pointer(code, common).map(Effect::Location),
            RESTORE_EXTENDED => state.restore(code.uleb()?, common.initial),
            // remember_state, restore_state
            0x0a => {
                *self.remembered.get_mut(self.depth)? = state;
                self.depth += 1;
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                state = self.remembered.get(self.depth)?.after_jump();
            }
            // def_cfa, def_cfa_sf
            0x0c | 0x12 => {
                let register = u16::try_from(code.uleb()?).ok()?;
                let offset = if op == 0x0c { code.uleb()? as i64 } else { common.factored(code.sleb()?) };
                state.set_base(register);
                state = state.with_offset(offset)?;
            }
            // def_cfa_register
            0x0d => {
                let register = u16::try_from(code.uleb()?).ok()?;
                state.has_base().then(|| state.set_base(register))?;
            }
            // def_cfa_expression
            0x0f => {
                let length = code.uleb()?;
                code.skip(length)?;
                state.set_no_base();
            }
            // def_cfa_offset_sf
            0x13 => state = state.with_offset(common.factored(code.sleb()?))?,
            // GNU_args_size
            0x2e => code.uleb().map(|_| ())?,
            _ => register(op, &mut state, code, common)?,
        }
        Some(Effect::State(state))
    }
}

/// Runs an instruction that sets the rule of a register.
fn register(op: u8, state: &mut State, code: &mut Code<'_>, common: &Common) -> Option<()> {
    if !matches!(op, 0x05 | 0x07..=0x09 | 0x10 | 0x11 | 0x14..=0x16 | 0x2f) {
        return None;
    }
    let register = code.uleb()?;
    match op {
        // offset_extended, offset_extended_sf, GNU_negative_offset_extended
        0x05 => state.saved(register, common.factored(code.uleb()? as i64)),
        0x11 => state.saved(register, common.factored(code.sleb()?)),
        0x2f => state.saved(register, common.factored(code.uleb()? as i64).wrapping_neg()),
        // undefined
        0x07 => state.undefined(register),
        // same_value, which is the default for the frame pointer
        0x08 if register == u64::from(RBP) => state.unsaid(register),
        0x08 => state.odd(register),
        // register
        0x09 => {
            u16::try_from(code.uleb()?).ok()?;
            state.odd(register);
        }
        // val_offset, val_offset_sf: by default the stack pointer is the CFA
        0x14 | 0x15 => {
            let offset = if op == 0x14 { code.uleb()? as i64 } else { common.factored(code.sleb()?) };
            match register == u64::from(RSP) && offset == 0 {
                true => state.unsaid(register),
                false => state.odd(register),
            }
        }
        // expression, val_expression
        _ => {
            let length = code.uleb()?;
            code.skip(length)?;
            state.odd(register);
        }
    }
    Some(())
}

impl Common {
    /// Converts `offset` from units of data alignment to bytes.
    #[inline(always)]
    fn factored(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.data_alignment)
    }
}

impl<'a> Function<'a> {
    fn code(&self) -> Code<'a> {
        Code::new(self.frames.bytes.get(self.code.clone()).unwrap_or_default())
    }

    /// Reads a code address.
    fn pointer(&self, code: &mut Code<'_>, common: &Common) -> Option<u64> {
        let mut bases = self.frames.bases;
        bases.function = Some(self.range.start);
        let at = self.code.end.checked_sub(code.len())?;
        let mut reader = Reader::new(self.frames.bytes, at, self.frames.kind).up_to(self.code.end);
        let address = common.encoding.read(&mut reader, &bases).ok()?;
        code.skip((reader.position() - at) as u64)?;
        Some(address)
    }
}
