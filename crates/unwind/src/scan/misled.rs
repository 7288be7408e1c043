//! Walks that rules have led to a return address of zero or outside all code: the rules of a frame, or what they say is saved in it, are
//! wrong.
//!
//! - libgcc's unwinder, before it goes to the handler of an exception, puts the registers and the return address of the handler's function
//!   where it had saved its own caller's. The stack pointer is not saved: it is that of the first place further out that has the same return
//!   address.
//! - Assembly with one rule for all of its code, such as LuaJIT's interpreter, has wrong ones in its prologues and epilogues. The instructions
//!   that are left of these say where the return address is.
//! - GCC has wrong rules behind calls through inline thunks (`-mindirect-branch=thunk-inline`). A word further out is accepted as return
//!   address if it follows a call that names the function.
//!
//! Results are marked as found by scanning. Without one, a return address outside all code is taken away: it is not a frame.

use alloc::vec::Vec;

use super::called::{Called, follows_call, may_follow_call};
use super::outwards::contradiction;
use super::places::{MAX_WORDS_CHECKED, ReadCode, caller_at, is_code, word_at};
use super::{callee, leads_on, nearest_kept, take};
use crate::address::Avma;
use crate::architecture::{Architecture, Epilogue};
use crate::cache::{Cache, Key};
use crate::code::{CodeMap, Located};
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::rule::Kind;
use crate::walker::Walker;

/// Maximum number of innermost frames among which a function that leaves for a handler is looked for. It calls only functions of its own
/// library.
const MOST_INNER: usize = 8;
/// Maximum number of words that are compared with the return address of a handler's function.
const MOST_WORDS: u64 = 8192;

/// Index of the frame that may have misled a walk.
enum Doubt {
    /// The frame may have been about to leave for a handler.
    Landing(usize),
    /// The rules of the frame may be wrong.
    Rules(usize),
}

/// Returns whether a frame may have misled a walk that found `frames` and ended with `end`.
pub(super) fn is_doubtful<A: Architecture, C: CodeMap>(
    code: &C,
    cache: &mut Cache,
    end: End,
    frames: &[Walked],
) -> bool {
    doubt::<A, C>(code, cache, end, frames).is_some()
}

fn doubt<A: Architecture, C: CodeMap>(
    code: &C,
    cache: &mut Cache,
    end: End,
    frames: &[Walked],
) -> Option<Doubt> {
    let last = frames.len().checked_sub(1)?;
    let by_rules = match end {
        End::Root if ends_at_zero(cache, frames.get(last)?) => Some(last),
        End::NotMapped if frames.get(last)?.is_return => last.checked_sub(1),
        End::StackUnreadable | End::NotAdvancing | End::RegisterUnknown => None,
        End::NoUnwindInfo | End::ProbedReturn => None,
        _ => return None,
    };
    // The walk itself finds the frame's first caller if there is a link register.
    let is_unknown = A::LR.is_none();
    let landing =
        frames.iter().take(MOST_INNER).position(|&frame| is_unknown && may_land::<A, C>(code, cache, frame));
    landing.map(Doubt::Landing).or(by_rules.map(Doubt::Rules))
}

/// Returns whether the rule of the outermost frame led to a return address of zero, and did not say that it has no caller.
fn ends_at_zero(cache: &mut Cache, frame: &Walked) -> bool {
    let key = Key { pc: frame.pc, is_return: frame.is_return };
    let known = cache.packed(key).or_else(|| cache.recall(key));
    let rule = known.and_then(|packed| cache.unpack(packed));
    rule.is_some_and(|rule| matches!(rule.kind, Kind::Sp | Kind::Fp | Kind::Odd | Kind::Full))
}

fn may_land<A: Architecture, C: CodeMap>(code: &C, cache: &mut Cache, frame: Walked) -> bool {
    let at = callee(frame);
    match code.locate(at) {
        Located::Module { module, bias } if module.isa() == A::ISA => {
            let row = module.row_with(at.to_svma(bias), &mut cache.scratch);
            matches!(row, Ok(Some(row)) if A::may_land(&row))
        }
        _ => false,
    }
}

/// Continues a walk from `start` that a frame may have misled, if the way on is found.
pub(super) fn resume<A: Architecture, C: CodeMap, M: Memory>(
    (code, text, memory, cache): (&C, &mut dyn ReadCode, &mut M, &mut Cache),
    start: &RegisterSet<A>,
    end: End,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let Some(doubt) = doubt::<A, C>(code, cache, end, frames) else { return end };
    let mut walker = Walker::new(code, memory, cache, start);
    let (Doubt::Landing(at) | Doubt::Rules(at)) = doubt;
    let found = replay(&mut walker, frames, at).and_then(|frame| match doubt {
        Doubt::Landing(_) => handler(&mut walker, frame),
        Doubt::Rules(0) if let Some(caller) = by_code_ahead(&mut walker) => Some(caller),
        Doubt::Rules(_) => direct_caller(&mut walker, text, frame),
    });
    let mut end = end;
    if let Some(mut frame) = found {
        frames.truncate(at + 1);
        end = loop {
            if frames.len() >= limit {
                break End::TooManyFrames;
            }
            frames.push(frame);
            match walker.step_out(frame.pc, frame.is_return, true) {
                Ok(caller) => frame = caller,
                Err(end) => break end,
            }
        };
    }
    if end == End::NotMapped && frames.len() > 1 && frames.last().is_some_and(|last| last.is_return) {
        frames.pop();
    }
    end
}

/// Makes the frame at an index the walker's current one; `None` if rules alone don't lead there.
fn replay<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    frames: &[Walked],
    at: usize,
) -> Option<Walked> {
    let mut frame = *frames.first()?;
    for known in frames.get(1..=at)? {
        frame = walker.caller(frame.pc, frame.is_return, true).ok()?;
        if frame.pc != known.pc || frame.is_return != known.is_return {
            return None;
        }
    }
    Some(frame)
}

/// Makes the function with an exception's handler the walker's current frame.
fn handler<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    frame: Walked,
) -> Option<Walked> {
    let caller = walker.caller(frame.pc, frame.is_return, true).ok()?;
    let sp = walker.registers.sp();
    let slots = (0..MOST_WORDS).map_while(|index| sp.checked_add(A::WORD * index));
    let mut words = slots.map_while(|slot| word_at(walker, slot));
    // Of several frames with the same return address, an exception reaches the innermost first, which has the same handler as the others.
    let found = words.find(|word| word.pc == caller.pc)?;
    drop(words);
    walker.registers.set(A::SP, found.slot.0.checked_add(A::WORD)?);
    Some(Walked { found: Method::Scan, ..found })
}

/// Makes the caller of the innermost frame the walker's current one, if that is in a prologue or an epilogue.
fn by_code_ahead<A: Architecture, C: CodeMap, M: Memory>(walker: &mut Walker<'_, A, C, M>) -> Option<Walked> {
    let (pc, sp, fp) = (Avma(walker.registers.ip()), walker.registers.sp(), walker.registers.get(A::FP));
    let (slot, fp) = match A::epilogue(pc, walker.memory) {
        Some(Epilogue { room, fp: None }) => (sp.checked_add(room)?, fp),
        Some(Epilogue { room, fp: Some(above) }) => {
            let saved = A::read_word(walker.memory, Avma(sp.checked_add(above)?)).ok();
            (sp.checked_add(room)?, saved)
        }
        // The rules hold once the prologue has run.
        None => {
            let taken = Some(A::prologue(pc, walker.memory)).filter(|&taken| taken > 0)?;
            let here = walker.registers;
            let mut trial = walker.trial(&here);
            trial.caller(pc, false, true).ok()?;
            let cfa = trial.registers.sp().checked_sub(taken)?;
            (cfa.checked_sub(A::WORD).filter(|&slot| slot >= sp)?, fp)
        }
    };
    let word = word_at(walker, slot)?;
    if !is_code(walker.code, word.pc.offset(-1)) || !may_follow_call::<A, M>(walker.memory, word.pc) {
        return None;
    }
    let mut caller = RegisterSet::new(word.pc.0, slot.checked_add(A::WORD)?);
    fp.into_iter().for_each(|fp| caller.set(A::FP, fp));
    Some(take(walker, (caller, Walked { found: Method::FramePointer, ..word })))
}

/// Makes the next caller that has called the function of `frame` by its address the walker's current frame. Its return address is further
/// out than the rules for `frame` say.
fn direct_caller<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    frame: Walked,
) -> Option<Walked> {
    let fp = walker.fp().ok();
    walker.caller(frame.pc, frame.is_return, true).ok()?;
    let sp = walker.registers.sp().checked_next_multiple_of(A::WORD)?;
    let callee = nearest_kept(walker, text, callee(frame));
    for index in 0..MAX_WORDS_CHECKED {
        let word = word_at(walker, sp.checked_add(A::WORD * index)?)?;
        if !is_code(walker.code, word.pc.offset(-1))
            || follows_call::<A, C>(walker.code, text, word.pc, callee) != Some(Called::Directly)
        {
            continue;
        }
        let caller = caller_at(walker, word, fp)?;
        if leads_on(walker, text, &caller, true).is_some() && contradiction(walker, text, &caller).is_none() {
            return Some(take(walker, (caller, word)));
        }
    }
    None
}
