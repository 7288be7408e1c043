//! Code that leaves for the handler of an exception (`__builtin_eh_return`): libgcc's unwinder, which Rust uses too.
//!
//! Once such a function has removed its frame, it adds the distance to the handler's frame to the stack pointer, and jumps. Its rules are then
//! those of a function without frame. Before that it has the handler's registers where it had saved its caller's.

use super::code::Code;
use super::decode::{Effect, effect};
use super::numbers::{PC, SP, X30};
use crate::architecture::{Architecture, Landing};
use crate::memory::Memory;
use crate::registers::RegisterSet;
use crate::row::{RegisterRule, Row};

/// Maximum number of instructions from the first restored register to the jump.
const MOST: u64 = 32;

/// Returns whether the row is of a function that may leave for a handler. These save the first register in which handlers get their data
/// (`EH_RETURN_DATA_REGNO` in GCC).
pub(super) fn may_land(row: &Row) -> bool {
    let is_saved = |register| matches!(row.register(register), RegisterRule::Offset(..0));
    !row.is_signal && is_saved(0) && is_saved(PC)
}

/// Returns whether code without a frame is about to move the stack pointer further out by the value of a register, or has done so and is about
/// to jump.
pub(super) fn at<A: Architecture, M: Memory>(registers: &RegisterSet<A>, memory: &mut M) -> Option<Landing> {
    let pc = registers.ip();
    let mut code = Code::new(memory);
    let here = code.word(pc)?;
    let moves = |word: u32| added(word).map(|by| registers.get(by).is_some_and(|by| by != 0));
    let ahead = |is| if is { Landing::Ahead } else { Landing::Not };
    let jump = match effect(here) {
        // GCC 14 asks first whether an exception is to be handled.
        Effect::MayBranch(_) => return code.word(pc.wrapping_add(4)).and_then(moves).map(ahead),
        _ if added(here).is_some() => return moves(here).map(ahead),
        Effect::Return => X30,
        Effect::Jump(register) => register,
        _ => return None,
    };
    let before = code.word(pc.wrapping_sub(4))?;
    let target = registers.get(jump)?;
    moves(before).map(|is| if is { Landing::At(target) } else { Landing::Not })
}

/// Returns whether the code goes on to such a move, as far as it only restores registers before that.
pub(super) fn is_ahead<A: Architecture, M: Memory>(registers: &RegisterSet<A>, memory: &mut M) -> bool {
    let (mut code, mut written) = (Code::new(memory), 0_u64);
    for at in (0..MOST).map(|index| registers.ip().wrapping_add(4 * index)) {
        let Some(word) = code.word(at) else { return false };
        if let Some(by) = added(word) {
            return written >> by & 1 == 0 && registers.get(by).is_some_and(|by| by != 0);
        }
        let writes = match effect(word) {
            Effect::Plain | Effect::MayBranch(_) => [None; 2],
            Effect::Access(access) => access.registers,
            Effect::Loads(registers) => registers,
            Effect::Add { to, .. } | Effect::Writes(to) | Effect::Move { to, .. } => [Some(to), None],
            _ => return false,
        };
        writes.into_iter().flatten().for_each(|register| written |= 1 << register);
    }
    false
}

/// Returns the register that `add sp, sp, register` adds.
fn added(word: u32) -> Option<u16> {
    let of = u32::from(SP) << 5 | u32::from(SP);
    (word & 0xffe0_ffff == 0x8b20_6000 | of).then_some((word >> 16 & 31) as u16)
}
