//! What has entered code that is in no file, as compilers make it at run time: [`entered_by`], for scans whose words are more than a guess.
//!
//! Such code is called through a pointer, or it is jumped to by a function of a file, an interpreter mostly, and goes on in the frame of that. The
//! second can be proven: the rules of the function that a call before a word names lead, from the registers at hand, to that very word; with an
//! interpreter in assembly, which has calls to the middle of code with one frame, from a frame that was made larger as well. The first
//! can't; so it is believed only of the first word from which rules lead to the root. Whatever else such a word says, what earlier calls have left
//! or what was jumped to from a frame that has grown, nothing is believed; nor beyond a word that may lead to code in no file itself, as there
//! may be frames of it between.

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

/// By what frames grow, and by how much code that is jumped to may have made one larger than that of the interpreter that jumps.
const ALIGNED: u64 = 16;
const MOST_GROWN: u64 = 4096;

/// The caller of code that is in no file, and its registers.
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

/// The registers of the caller `found` of the function that is called at `target`, if the code at hand runs in that function's frame.
fn as_function<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    target: Avma,
    found: Walked,
) -> Option<RegisterSet<A>> {
    let Located::Module { module, bias } = walker.code.locate(target) else { return None };
    let stated = target.to_svma(bias);
    let Extent::Function(range) = module.extent(stated) else { return None };
    // A function has no frame yet where it begins. An interpreter in assembly has several entries, with one frame for all of it; code that it
    // jumps to may have made that larger.
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
