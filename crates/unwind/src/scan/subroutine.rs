//! Subroutines inside a function, unknown to its rules: an interpreter in assembly has one frame for all of
//! its code, and a call of a part of that code has put one more word on the stack, which makes all rules wrong there.
//!
//! Tried only where rules led nowhere ([`is_doubtful`]). A candidate is accepted if the word on top of the stack
//! follows a call, in code under the same rules, whose target is between the start of that code and the program
//! counter.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::module::Extent;
use crate::registers::RegisterSet;
use crate::walker::Walker;

use super::called::calls_before;
use super::places::{ReadCode, word_at};

/// Returns whether the rules of the innermost frame may have misled a walk that ended this way: to a zero, or to an
/// address that is not code.
pub(super) fn is_doubtful(end: End, frames: &[Walked]) -> bool {
    match end {
        End::Root => frames.len() == 1,
        End::NotMapped => frames.len() == 2 && frames.last().is_some_and(|last| last.is_return),
        _ => false,
    }
}

/// Returns the caller of the subroutine that the program counter is in, and its registers.
pub(super) fn called_by<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
) -> Option<(RegisterSet<A>, Walked)> {
    let here = Avma(walker.registers.ip());
    let word = word_at(walker, walker.registers.sp())?;
    let Located::Module { module, bias } = walker.code.locate(here) else { return None };
    let Extent::Function(range) = module.extent(here.to_svma(bias)) else { return None };
    let (Some(target), _) = calls_before::<A, C>(walker.code, text, word.pc) else { return None };
    let [stated, called] = [word.pc, target].map(|at| at.to_svma(bias));
    let is_part = range.contains(&stated) && range.start < called && called <= here.to_svma(bias);
    let mut caller = walker.registers;
    caller.set(A::PC, word.pc.0);
    caller.set(A::SP, word.slot.0.checked_add(A::WORD)?);
    is_part.then_some((caller, word))
}
