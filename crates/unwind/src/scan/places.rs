//! What is known of addresses and words, for all that looks for callers by scanning.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::Walked;
use crate::memory::Memory;
use crate::method::Method;
use crate::module::Extent;
use crate::registers::RegisterSet;
use crate::walker::Walker;

/// So many words are looked at for one frame where no guess is wanted: hand-written code has small frames.
pub(super) const MAX_WORDS_CHECKED: u64 = 512;
/// What a frame pointer that may still be the caller's is not further away than.
const MAX_FRAME: u64 = 8 << 20;

/// Reads the machine code of what is unwound: from its memory or from its files.
pub trait ReadCode {
    /// Copies the code from `at` on. False unless all of `to` could be filled.
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool;
}

/// The word at `slot` as the return address of a caller that a scan finds; `None`: it can't be read.
pub(super) fn word_at<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    slot: u64,
) -> Option<Walked> {
    let word = A::read_word(walker.memory, Avma(slot)).ok()?;
    let pc = Avma(walker.code_address(word));
    Some(Walked { pc, is_return: true, found: Method::Scan, slot: Avma(slot) })
}

/// The registers of the caller that is found by `word`. `fp`: what the frame pointer was when it was saved.
pub(super) fn caller_at<A: Architecture, C: CodeMap, M: Memory>(
    walker: &Walker<'_, A, C, M>,
    word: Walked,
    fp: Option<u64>,
) -> Option<RegisterSet<A>> {
    let mut caller = RegisterSet::new(word.pc.0, word.slot.0.checked_add(A::WORD)?);
    let fp = fp.filter(|fp| fp.checked_sub(word.slot.0).is_some_and(|up| up > 0 && up < MAX_FRAME));
    // Only rules know what it is for.
    if let Some(fp) = fp.filter(|_| has_rules(walker.code, word.pc.offset(-1))) {
        caller.set(A::FP, fp);
    }
    Some(caller)
}

/// Whether there is code at an address that user space may have.
pub(super) fn is_code<C: CodeMap>(code: &C, at: Avma) -> bool {
    at.0 >> 63 == 0 && !matches!(code.locate(at), Located::Unmapped)
}

/// Whether a process begins around an address.
pub(super) fn is_entry<C: CodeMap>(code: &C, at: Avma) -> bool {
    match code.locate(at) {
        Located::Module { module, bias } => {
            module.entry().is_some_and(|entry| entry.contains(&at.to_svma(bias)))
        }
        _ => false,
    }
}

/// Whether an address is in a file that can be read, or in none.
pub(super) fn is_readable<C: CodeMap>(code: &C, at: Avma) -> bool {
    matches!(code.locate(at), Located::Module { .. } | Located::NoInfo)
}

/// Whether an address is in code that is in no file, as compilers make it at run time.
pub(super) fn is_made<C: CodeMap>(code: &C, at: Avma) -> bool {
    matches!(code.locate(at), Located::NoInfo)
}

/// Whether rules are known for an address.
pub(super) fn has_rules<C: CodeMap>(code: &C, at: Avma) -> bool {
    match code.locate(at) {
        Located::Module { module, bias } => {
            matches!(module.extent(at.to_svma(bias)), Extent::Function(_))
        }
        _ => false,
    }
}
