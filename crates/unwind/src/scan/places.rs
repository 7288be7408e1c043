//! Predicates for addresses and words, shared by the scans.

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::code::{CodeMap, Located};
use crate::frame::Walked;
use crate::memory::Memory;
use crate::method::Method;
use crate::module::Extent;
use crate::registers::RegisterSet;
use crate::walker::Walker;

/// Maximum number of words that are examined for one frame in checked mode: hand-written code has small frames.
pub(super) const MAX_WORDS_CHECKED: u64 = 512;
/// Maximum distance in bytes to a frame pointer that may still be the caller's.
const MAX_FRAME: u64 = 8 << 20;

/// Reads the machine code of the process being unwound, from its memory or from its files.
pub trait ReadCode {
    /// Copies the code from `at` on. Returns `false` unless all of `to` was filled.
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool;
}

/// Interprets the word at `slot` as the return address of a caller found by scanning; `None` if it cannot be read.
pub(super) fn word_at<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    slot: u64,
) -> Option<Walked> {
    let word = A::read_word(walker.memory, Avma(slot)).ok()?;
    let pc = Avma(walker.code_address(word));
    Some(Walked { pc, is_return: true, found: Method::Scan, slot: Avma(slot) })
}

/// Returns the registers of the caller with return address `word`. `fp`: the frame pointer at the point where it was
/// saved.
pub(super) fn caller_at<A: Architecture, C: CodeMap, M: Memory>(
    walker: &Walker<'_, A, C, M>,
    word: Walked,
    fp: Option<u64>,
) -> Option<RegisterSet<A>> {
    let mut caller = RegisterSet::new(word.pc.0, word.slot.0.checked_add(A::WORD)?);
    let fp = fp.filter(|fp| fp.checked_sub(word.slot.0).is_some_and(|up| up > 0 && up < MAX_FRAME));
    // Only rules give a meaning to the frame pointer.
    if let Some(fp) = fp.filter(|_| has_rules(walker.code, word.pc.offset(-1))) {
        caller.set(A::FP, fp);
    }
    Some(caller)
}

/// Returns whether an address is in user space and mapped as code.
pub(super) fn is_code<C: CodeMap>(code: &C, at: Avma) -> bool {
    at.0 >> 63 == 0 && !matches!(code.locate(at), Located::Unmapped)
}

/// Returns whether an address is in the start routine of a process.
pub(super) fn is_entry<C: CodeMap>(code: &C, at: Avma) -> bool {
    match code.locate(at) {
        Located::Module { module, bias } => {
            module.entry().is_some_and(|entry| entry.contains(&at.to_svma(bias)))
        }
        _ => false,
    }
}

/// Returns whether an address is in a readable file, or in code without a file.
pub(super) fn is_readable<C: CodeMap>(code: &C, at: Avma) -> bool {
    matches!(code.locate(at), Located::Module { .. } | Located::NoInfo)
}

/// Returns whether an address is in code that is not in a file, such as a JIT compiler generates.
pub(super) fn is_made<C: CodeMap>(code: &C, at: Avma) -> bool {
    matches!(code.locate(at), Located::NoInfo)
}

/// Returns whether an address has rules.
pub(super) fn has_rules<C: CodeMap>(code: &C, at: Avma) -> bool {
    match code.locate(at) {
        Located::Module { module, bias } => {
            matches!(module.extent(at.to_svma(bias)), Extent::Function(_))
        }
        _ => false,
    }
}
