//! Stack scan: where nothing else identifies the caller, the first word further up the stack that could be a return
//! address is taken for one. [`resume()`] in checked mode does so only for code in files and with more evidence for
//! the word; [`walk()`] does so for all code.
//!
//! A word is accepted if all of this holds, as far as the code can be read:
//! - it points just after a call instruction, in executable code;
//! - if that call names its target, then that is the function found before: its start, or, where no rules say where functions
//!   begin, an address between the end of the nearest function with rules before it and the program counter; jumps are
//!   followed, and imported functions (through the procedure linkage table) may be any;
//! - if the rules for the caller lead to *its* caller, the same holds for that.
//!
//! A caller with rules that was called through a pointer is skipped if rules do not lead from it to the root, unless
//! no better one is found. Returned calls also leave words from which rules lead to the root; but then a call further
//! out names another function, which was called later. Such a word is skipped in favor of one before that call with
//! which all calls agree. If there is no such word, it is accepted if the function that was called may have jumped
//! on, or if guesses are wanted. Two errors remain: words of returned calls are accepted if the call further out goes
//! through a pointer, and the caller of a function that then jumped to the current one is skipped. So results are
//! marked as [`Method::Scan`], and no frame further out is trusted more ([`trust`](fn@crate::trust)).
//!
//! In checked mode, a word is only accepted if the call names its target, or the rules for the caller lead to *its*
//! caller, or the caller ends its thread, or a scan finds the caller's caller, also checked. A call through a pointer
//! is not enough if nothing else is known. The start routine of a process is recognized by the stack that the kernel
//! sets up for it.
//!
//! 32-bit ARM is not supported. Elsewhere: recognizing calls (`calls`), their targets (`called`), callers of code
//! that is not in a file in checked mode (`entry`), and walks that rules have led nowhere (`misled`, `subroutine`).

mod called;
#[doc(hidden)]
pub mod calls;
mod entry;
mod misled;
mod outwards;
mod places;
mod subroutine;

use alloc::vec::Vec;

use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cache::Cache;
use crate::code::CodeMap;
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::walker::Walker;

pub(crate) use called::{Called, Came, called, came_from, may_follow_call};
use called::{Callee, came, follows_call, nearest};
use outwards::contradiction;
pub(crate) use outwards::reaches_root;
pub use places::ReadCode;
use places::{MAX_WORDS_CHECKED, caller_at, has_rules, is_code, is_entry, is_made, is_readable, word_at};

/// Maximum number of words that are examined for one frame if guesses are wanted.
const MAX_WORDS: u64 = 2048;
/// Maximum number of scans in one stack.
const MAX_SCANS: u32 = 16;
/// Maximum number of callers of a caller that a checked scan looks for.
const MAX_DEPTH: u32 = 4;

/// As [`walk`](fn@crate::walk), but scans the stack where that walk ends for lack of unwind information.
///
/// A stack that needs no scan costs no more. Each frame that needs one costs at most 2,048 lookups in the
/// [`CodeMap`], and a stack has at most 16 such frames.
pub fn walk<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    text: &mut dyn ReadCode,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let end = crate::walk::walk(code, memory, cache, start, limit, frames);
    resume::<A, C, M>(false, (code, text, memory, cache), start, end, limit, frames)
}

/// Scans where a walk from `start` that found `frames` ended with `end`, if that may help. `checked`: only for code
/// in files, and only words that are more than a guess.
pub fn resume<A: Architecture, C: CodeMap, M: Memory>(
    checked: bool,
    (code, text, memory, cache): (&C, &mut dyn ReadCode, &mut M, &mut Cache),
    start: &RegisterSet<A>,
    end: End,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let end = by_words::<A, C, M>(checked, (code, text, memory, cache), start, end, limit, frames);
    misled::resume((code, text, memory, cache), start, end, limit, frames)
}

/// As [`resume`], except for walks that a frame has misled.
fn by_words<A: Architecture, C: CodeMap, M: Memory>(
    checked: bool,
    (code, text, memory, cache): (&C, &mut dyn ReadCode, &mut M, &mut Cache),
    start: &RegisterSet<A>,
    end: End,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let is_wanted = |frame: Walked| !checked || is_readable(code, callee(frame));
    let is_doubtful = subroutine::is_doubtful(end, frames);
    if !may_follow(end, frames) || !is_doubtful && frames.last().is_some_and(|&frame| !is_wanted(frame)) {
        return end;
    }
    // Uses full rows from the start, so that no walk with fewer known registers has to be repeated.
    let mut walker = Walker::new(code, memory, cache, start);
    let part = if is_doubtful { subroutine::called_by(&mut walker, text) } else { None };
    if is_doubtful && part.is_none() {
        return end;
    }
    frames.clear();
    let pc = Avma(start.ip());
    let mut frame = Walked { pc, is_return: false, found: Method::Sampled, slot: Avma(0) };
    if let Some(found) = part {
        frames.push(frame);
        frame = take(&mut walker, found);
    }
    let mut scans = 0;
    loop {
        if frames.len() >= limit {
            return End::TooManyFrames;
        }
        frames.push(frame);
        frame = match walker.step_out(frame.pc, frame.is_return, true) {
            Ok(caller) => caller,
            Err(end) if helps(end, frame.is_return) && scans < MAX_SCANS && is_wanted(frame) => {
                scans += 1;
                match scan(&mut walker, text, frame, checked.then_some(MAX_DEPTH)) {
                    Some(caller) => caller,
                    None => return end,
                }
            }
            Err(end) => return end,
        };
    }
}

/// Returns whether [`resume`] may find more frames than a walk that found `frames` and ended with `end`.
pub fn may_help<A: Architecture, C: CodeMap>(
    code: &C,
    cache: &mut Cache,
    end: End,
    frames: &[Walked],
) -> bool {
    may_follow(end, frames) || misled::is_doubtful::<A, C>(code, cache, end, frames)
}

/// Returns whether [`by_words`] may find more frames.
fn may_follow(end: End, frames: &[Walked]) -> bool {
    let is_return = frames.last().is_some_and(|frame| frame.is_return);
    helps(end, is_return) || subroutine::is_doubtful(end, frames)
}

/// Returns whether a scan may find the caller of the last frame of a walk that ended this way. A return address that
/// is not code cannot be continued: the frame that it was read from is wrong.
fn helps(end: End, is_return: bool) -> bool {
    match end {
        End::NoUnwindInfo | End::BadUnwindInfo | End::RegisterUnknown => true,
        End::NotMapped => !is_return,
        _ => false,
    }
}

/// Finds the caller of `frame` and makes it the walker's current frame. `depth`: check the result by up to this
/// number of callers further out; `None`: unchecked.
fn scan<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    frame: Walked,
    depth: Option<u32>,
) -> Option<Walked> {
    if is_made(walker.code, callee(frame)) {
        let found = entry::entered_by(walker, text);
        if found.is_some() || depth.is_some() {
            return found.map(|found| take(walker, found));
        }
    }
    // Read the saved frame pointer now: the walker's state is about to change.
    let fp = walker.fp().ok();
    let sp = walker.registers.sp().checked_next_multiple_of(A::WORD)?;
    let callee = nearest_kept(walker, text, callee(frame));
    // The first candidate from which rules do not reach the root; and the first that a frame further out contradicts,
    // with the location of that contradiction.
    let (mut doubtful, mut contradicted) = (None, None);
    for index in 0..if depth.is_some() { MAX_WORDS_CHECKED } else { MAX_WORDS } {
        let slot = sp.checked_add(A::WORD * index);
        let Some(word) = slot.and_then(|slot| word_at(walker, slot)) else { break };
        if contradicted.is_some_and(|(_, (at, _))| word.slot > at) {
            break;
        }
        if !is_code(walker.code, word.pc.offset(-1)) {
            continue;
        }
        let Some(caller) = caller_at(walker, word, fp) else { break };
        let found = (caller, word);
        match weigh(walker, text, callee, &caller, depth) {
            Weighed::No => {}
            Weighed::Doubtful => doubtful = doubtful.or(Some(found)),
            Weighed::Unsure if contradicted.is_some() => break,
            Weighed::Unsure => return None,
            Weighed::Yes => match (contradiction(walker, text, &caller), contradicted) {
                (Some(at), None) => contradicted = Some((found, at)),
                (Some((at, _)), Some((_, (before, _)))) if at <= before => {}
                _ => return Some(take(walker, found)),
            },
        }
    }
    // An unseen jump may have led to the function; that is a guess.
    let may_be = contradicted.filter(|(_, (_, came))| depth.is_none() || *came != Came::Never);
    let found = may_be.map(|(found, _)| found).or(doubtful)?;
    Some(take(walker, found))
}

/// Makes a caller the walker's current frame.
fn take<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    (caller, found): (RegisterSet<A>, Walked),
) -> Walked {
    walker.restart(caller);
    found
}

/// Assessment of a word as a return address.
enum Weighed {
    /// Not a return address.
    No,
    /// Possibly left by an earlier call, because rules do not lead from it to the root. Used only if no better word
    /// is found.
    Doubtful,
    /// A possible return address, but with too little evidence for a checked scan.
    Unsure,
    /// Accepted.
    Yes,
}

/// Assesses whether `caller` called `callee`. `depth` as in [`scan`].
fn weigh<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    callee: Callee,
    caller: &RegisterSet<A>,
    depth: Option<u32>,
) -> Weighed {
    let pc = Avma(caller.ip());
    // The start routine of a process often jumps to the code that calls `main`, so its call may name another
    // function.
    if is_entry(walker.code, pc.offset(-1))
        && (0..3).any(|word| walker.begins_process(caller.sp() + A::WORD * word))
    {
        return Weighed::Yes;
    }
    let is_called = follows_call::<A, C>(walker.code, text, pc, callee);
    if is_called == Some(Called::Elsewhere) {
        return Weighed::No;
    }
    let Some(is_confirmed) = leads_on(walker, text, caller, is_called.is_some()) else { return Weighed::No };
    let is_sure = is_called == Some(Called::Directly) || A::ends_thread(pc, walker.memory);
    match depth {
        _ if is_sure => Weighed::Yes,
        Some(depth) if is_confirmed || has_caller(walker, text, caller, depth) => Weighed::Yes,
        Some(_) => Weighed::Unsure,
        None if !has_rules(walker.code, pc.offset(-1)) || reaches_root(walker, caller) => Weighed::Yes,
        None => Weighed::Doubtful,
    }
}

/// Returns whether a checked scan finds the caller of `caller`.
fn has_caller<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    caller: &RegisterSet<A>,
    depth: u32,
) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let pc = Avma(caller.ip());
    let frame = Walked { pc, is_return: true, found: Method::Scan, slot: Avma(0) };
    scan(&mut walker.trial(caller), text, frame, Some(depth)).is_some()
}

/// As [`nearest`], with the result cached.
fn nearest_kept<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    at: Avma,
) -> Callee {
    if let Some(floor) = walker.cache.floor(at) {
        return Callee::at(walker.code, at, floor);
    }
    let callee = nearest::<A, C>(walker.code, text, at);
    walker.cache.keep_floor(at, callee.floor);
    callee
}

/// Returns an address inside the function that a frame is in.
fn callee(frame: Walked) -> Avma {
    frame.pc.offset(-i64::from(frame.is_return))
}

/// Returns whether rules for `caller` lead to a possible caller of it: `Some(true)` if so, `Some(false)` if nothing
/// is known or memory cannot be read, `None` if they lead elsewhere. Code that signal handlers return to does not
/// follow a call, but has rules that identify it.
fn leads_on<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    caller: &RegisterSet<A>,
    is_called: bool,
) -> Option<bool> {
    let code = walker.code;
    let pc = Avma(caller.ip());
    match walker.trial(caller).caller(pc, true, true) {
        Ok(Walked { pc: Avma(0), .. }) | Err(End::Root) => is_called.then_some(true),
        Ok(next) if next.found == Method::Signal => is_code(code, next.pc).then_some(true),
        Ok(next) if next.found == Method::Cfi => {
            let below = Callee::at(code, pc.offset(-1), Avma(0));
            (is_called && came::<A, C>(code, text, next.pc, below) > Came::Unknown).then_some(true)
        }
        // Found by convention, which is not evidence.
        Ok(_) | Err(End::NoUnwindInfo | End::RegisterUnknown | End::BeyondCopy | End::StackUnreadable) => {
            is_called.then_some(false)
        }
        Err(_) => None,
    }
}
