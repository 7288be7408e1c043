//! Finds the caller of code that is not in a file, such as a JIT compiler generates: [`entered_by`], for scans that
//! accept only verified words.
//!
//! Such code is called through a pointer, or a function of a file, usually an interpreter, jumps to it and it
//! continues in that function's frame. The second case can be proven: the rules of the function named by the call
//! before a word lead from the current registers to that very word. In an interpreter in assembly, where calls lead
//! into code that shares one frame, the frame may also have been enlarged. The first case cannot be proven, so it is
//! accepted only for the first word from which rules lead to the root. Everything else is rejected: leftovers of
//! earlier calls, and jumps from an enlarged frame. So is everything beyond a word that may lead to code that is
//! itself not in a file, because there may be frames of such code in between.

use crate::address::{Avma, Svma};
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::Walked;
use crate::memory::Memory;
use crate::module::Extent;
use crate::registers::RegisterSet;
use crate::row::CfaRule;
use crate::walker::Walker;

use super::called::{calls_before, may_follow_call};
use super::outwards::reaches_root;
use super::places::{MAX_WORDS_CHECKED, ReadCode, caller_at, has_rules, is_code, is_made, word_at};

/// Granularity in bytes by which frames grow.
const ALIGNED: u64 = 16;
/// Maximum number of bytes by which code that an interpreter jumps to may have enlarged its frame.
const MOST_GROWN: u64 = 4096;

/// Returns the caller of code that is not in a file, and its registers.
pub(super) fn entered_by<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
) -> Option<(RegisterSet<A>, Walked)> {
    let fp = walker.fp().ok();
    let sp = walker.registers.sp().checked_next_multiple_of(A::WORD)?;
    for index in 0..MAX_WORDS_CHECKED {
        let found = word_at(walker, sp.checked_add(A::WORD * index)?)?;
        let (pc, call) = (found.pc, found.pc.offset(-1));
        if !is_code(walker.code, call) {
            continue;
        }
        if is_made(walker.code, call) {
            match may_follow_call::<A, M>(walker.memory, pc) {
                true => return None,
                false => continue,
            }
        }
        let (direct, through_pointer) = calls_before::<A, C>(walker.code, text, pc);
        if !has_rules(walker.code, call) || direct.is_none() && !through_pointer {
            continue;
        }
        if let Some(caller) = direct.and_then(|target| as_function(walker, target, found))
            && reaches_root(walker, &caller)
        {
            return Some((caller, found));
        }
        let caller = caller_at(walker, found, fp)?;
        if reaches_root(walker, &caller) {
            return through_pointer.then_some((caller, found));
        }
    }
    None
}

/// Returns the registers of the caller `found` of the function called at `target`, if the current code runs in that
/// function's frame.
fn as_function<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    target: Avma,
    found: Walked,
) -> Option<RegisterSet<A>> {
    let Located::Module { module, bias } = walker.code.locate(target) else { return None };
    let stated = target.to_svma(bias);
    let Extent::Function(range) = module.extent(stated) else { return None };
    // At its start a function has no frame yet. An interpreter in assembly has several entry points and one frame for
    // all of its code; code that it jumps to may have enlarged that frame.
    let is_part = stated != range.start;
    let middle = Svma(range.start.0 + (range.end.0 - range.start.0) / 2);
    let inside = if is_part { stated } else { middle };
    let mut registers = walker.registers;
    registers.set(A::PC, inside.0.wrapping_add(bias));
    if is_part {
        let row = module.row_with(inside, &mut walker.cache.scratch).ok()??;
        let CfaRule::Register { register, offset } = row.cfa else { return None };
        let sp = A::add(found.slot.0, A::WORD as i64 - offset);
        let grown = sp.checked_sub(registers.sp()).filter(|grown| register == A::SP && grown % ALIGNED == 0);
        grown.filter(|&grown| grown <= MOST_GROWN)?;
        registers.set(A::SP, sp);
    }
    let mut trial = walker.trial(&registers);
    let caller = trial.by_row(Avma(registers.ip()), false).ok()?;
    ((caller.pc, caller.slot) == (found.pc, found.slot)).then_some(trial.registers)
}
