//! Runs the instructions of functions as nearly all compilers write them: code in units of a byte, stacks in words.
//!
//! Eight bytes are looked at together, so that what mostly begins a row, an advance and another offset of the CFA, is one
//! step. What is rare is left to [`Machine`], one instruction of it or all the rest of the function. The rows are those
//! that [`Machine::run`] gives.

use core::ops::Range;

use super::code::Code;
use super::machine::{Common, Effect, Function, Machine};
use super::open::{Around, Open, Rows};
use super::state::State;

/// How many bytes are looked at together.
pub(super) const WINDOW: usize = 8;

/// What [`Machine::run_usual`] can run.
pub(super) fn is_usual(common: &Common) -> bool {
    common.code_alignment == 1 && common.data_alignment == -8 && common.initial.is_plain()
}

/// Whether a `def_cfa_offset` comes, with a number of one byte.
#[inline(always)]
fn is_offset(bytes: u64) -> bool {
    bytes & 0x80ff == 0x000e
}

/// The same with a number of two bytes.
#[inline(always)]
fn is_long_offset(bytes: u64) -> bool {
    bytes & 0x80_80ff == 0x00_800e
}

/// Whether an `offset` comes, with a number of one byte.
#[inline(always)]
fn is_saved(bytes: u64) -> bool {
    bytes & 0x80c0 == 0x0080
}

/// Whether an advance comes that has its number within.
#[inline(always)]
fn is_advance(bytes: u64) -> bool {
    bytes & 0xc0 == 0x40
}

/// What is left of `bytes` after the first `count`.
#[inline(always)]
fn after(bytes: &[u8], count: usize) -> &[u8] {
    bytes.get(count..).unwrap_or_default()
}

/// The first bytes as a number, if there are so many.
#[inline(always)]
fn window(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<WINDOW>().map(|&bytes| u64::from_le_bytes(bytes))
}

/// The instructions of a function without the zeros that fill up its entry, and as many bytes as a window has beyond.
/// `None` where the section ends before that.
#[inline(always)]
pub(super) fn instructions<'a>(section: &'a [u8], code: &Range<usize>) -> Option<&'a [u8]> {
    let bytes = section.get(code.start..code.end + WINDOW)?;
    let own = bytes.len() - WINDOW;
    let zeros = match own.checked_sub(WINDOW).and_then(|last| window(after(bytes, last))) {
        Some(last) => last.leading_zeros() as usize / 8,
        None => own.min((window(bytes)? << (64 - 8 * own.max(1))).leading_zeros() as usize / 8),
    };
    bytes.get(..bytes.len() - zeros)
}

/// How a group of instructions ends that change what holds at one place.
enum Ends {
    /// With an advance, or with the function's instructions.
    InAdvance,
    /// With what takes the machine.
    Otherwise,
}

/// What one function's instructions are run with.
struct Quick<'a, 'm> {
    machine: &'m mut Machine,
    function: &'m Function<'a>,
    common: &'m Common,
    /// The offset in the section of what ends `rest`.
    beyond: usize,
}

impl Machine {
    /// As [`Machine::run`], for what [`is_usual`] and has these [`instructions`].
    #[inline(never)]
    pub(super) fn run_usual<R: Rows>(
        &mut self,
        function: &Function<'_>,
        common: &Common,
        instructions: &[u8],
        rows: &mut R,
    ) -> u64 {
        self.forget();
        let beyond = function.code.start + instructions.len();
        let mut quick = Quick { machine: self, function, common, beyond };
        let end = function.range.end;
        // What changes is in local variables, which are kept in registers. The open row begins at `start`; what it says
        // has a base, an offset that fits, and was not restored from before a jump.
        let mut rest = instructions;
        let mut start = function.range.start;
        let mut location = start;
        let (mut here, mut offset) = (common.initial, common.initial.offset() as u32);
        // As if something had been pushed.
        let mut grown = 8;
        let mut pair = Pair::after(offset, grown);
        while rest.len() > WINDOW {
            let Some(mut eight) = window(rest) else { break };
            // Pushes or pops, one after the other. There is no room for a call between them.
            if !R::BETWEEN_PUSHES
                && let Some(mut length) = pair.length(eight)
            {
                while rest.len() > WINDOW + 3 && location + length < end {
                    let Some(next) = window(after(rest, 3)) else { break };
                    location += length;
                    pair = pair.then(grown);
                    rest = after(rest, 3);
                    eight = next;
                    match pair.length(eight) {
                        Some(next) => length = next,
                        None => break,
                    }
                }
                offset = pair.before(grown);
                start = location;
            }
            let (delta, then, size) = match eight as u8 {
                _ if is_advance(eight) => (eight & 0x3f, eight >> 8, 1),
                0x02 => (eight >> 8 & 0xff, eight >> 16, 2),
                0x03 => (eight >> 8 & 0xffff, eight >> 24, 3),
                // What comes before the first advance.
                _ => (0, eight, 0),
            };
            let to = location + delta;
            // Most rows begin with one instruction that says how large the stack is.
            let is_all = is_advance(then >> 16) || rest.len() == WINDOW + size + 2;
            if is_offset(then) && is_all && rest.len() >= WINDOW + size + 2 && to < end {
                rest = after(rest, size + 2);
                location = to;
                let new = (then >> 8) as u32 & 0x7f;
                let grows = new.wrapping_sub(offset) as i32;
                pair = Pair::NONE;
                if grows != 0 {
                    let length = location - start;
                    if length >= R::SHORTEST {
                        let here = here.at_offset(offset);
                        let after = Some(here.at_offset(new));
                        rows.row(start..location, Around { grown, here, grows, after });
                    }
                    grown = if length == 0 { 0 } else { grows };
                    (start, offset) = (location, new);
                    pair = Pair::after(offset, grown);
                }
                continue;
            }
            here = here.at_offset(offset);
            let open = Open::begun(start, grown, here);
            if rest.len() < WINDOW + size {
                return quick.resume(open, here, location, rest, rows);
            }
            if to >= end {
                return open.fail(end, rows);
            }
            location = to;
            let next;
            match quick.group(here, location, after(rest, size)) {
                (Ends::InAdvance, state, code) if state == here || !state.says(here) => {
                    (next, rest) = (state, code);
                }
                (_, state, code) => return quick.resume(open, state, location, code, rows),
            }
            pair = Pair::NONE;
            if next != here {
                let grows = next.change_from(here);
                let length = location - start;
                if length >= R::SHORTEST {
                    rows.row(start..location, Around { grown, here, grows, after: Some(next) });
                }
                grown = if length == 0 { 0 } else { grows };
                (start, here) = (location, next.settled());
                offset = here.offset() as u32;
                pair = Pair::after(offset, grown);
            }
        }
        Open::begun(start, grown, here.at_offset(offset)).complete(location, end, rows)
    }
}

impl Quick<'_, '_> {
    /// Leaves all the rest to the machine, from the instruction on that `rest` begins with.
    #[cold]
    fn resume<R: Rows>(self, open: Open, state: State, location: u64, rest: &[u8], rows: &mut R) -> u64 {
        let at = self.beyond - rest.len();
        self.machine.resume(self.function, self.common, open, (state, location), at, rows)
    }

    /// Runs instructions up to an advance.
    #[inline(always)]
    fn group<'a>(&mut self, mut state: State, location: u64, mut rest: &'a [u8]) -> (Ends, State, &'a [u8]) {
        while rest.len() > WINDOW {
            let Some(eight) = window(rest) else { break };
            let (op, is_short) = (eight as u8, rest.len() < WINDOW + 2);
            if is_saved(eight) && !is_short {
                save(&mut state, eight);
                rest = after(rest, 2);
            } else if is_advance(eight) || op | 1 == 0x03 && rest.len() >= WINDOW + 3 {
                // An advance whose number is missing is damage: no row ends there.
                break;
            } else if is_offset(eight) && !is_short {
                state.set_offset((eight >> 8) as u32 & 0x7f);
                rest = after(rest, 2);
            } else if is_long_offset(eight) && rest.len() >= WINDOW + 3 {
                state.set_offset((eight >> 8 & 0x7f | eight >> 9 & 0x3f80) as u32);
                rest = after(rest, 3);
            } else if op >= 0xc0 {
                state.restore((op & 0x3f).into(), self.common.initial);
                rest = after(rest, 1);
            } else {
                let own = after(rest, 1).len() - WINDOW;
                let mut code = Code::new(after(rest, 1).get(..own).unwrap_or_default());
                match self.machine.slow(op, state, location, &mut code, self.function, self.common) {
                    Some(Effect::State(new)) if new.settled().is_plain() => state = new,
                    _ => return (Ends::Otherwise, state, rest),
                }
                rest = after(rest, 1 + own - code.len());
            }
        }
        (Ends::InAdvance, state, rest)
    }
}

/// The instructions that come next if another register is pushed, or popped, as the one before: an advance of one or two
/// bytes, as long as the push is, a `def_cfa_offset`, and then another advance.
#[derive(Clone, Copy)]
struct Pair(u64);

impl Pair {
    /// No bytes are this.
    const NONE: Pair = Pair(1 << 63);

    /// What comes where the CFA has this offset, since the stack has grown by a word, or by minus a word.
    #[inline(always)]
    fn after(offset: u32, grown: i32) -> Pair {
        match (grown == 8 || grown == -8) && offset < 0x80 {
            true => Pair(0x4000_0e40 | u64::from(offset) << 16).then(grown),
            false => Pair::NONE,
        }
    }

    /// The next one.
    #[inline(always)]
    fn then(self, grown: i32) -> Pair {
        Pair(self.0.wrapping_add_signed(i64::from(grown) << 16))
    }

    /// The offset before it.
    #[inline(always)]
    fn before(self, grown: i32) -> u32 {
        (self.0 as u32 >> 16).wrapping_sub(grown as u32) & 0xff
    }

    /// How long the row is that ends with it, if it comes.
    #[inline(always)]
    fn length(self, bytes: u64) -> Option<u64> {
        // What is left is the advance: the same instructions have the same bits.
        let length = bytes & 0xc0ff_ffff ^ self.0;
        (length.wrapping_sub(1) < 2 && bytes & 0x80_0000 == 0).then_some(length)
    }
}

/// An `offset` in two bytes: a register is saved so many words below the CFA.
#[inline(always)]
fn save(state: &mut State, bytes: u64) {
    let register = bytes as u8 & 0x3f;
    if State::tracks(register) {
        state.saved(register.into(), -8 * (bytes >> 8 & 0x7f) as i64);
    }
}
