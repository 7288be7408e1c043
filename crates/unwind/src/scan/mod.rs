//! Stack scan: where nothing else tells who the caller is, the first word further up the stack that could be a return
//! address is taken for one. [`resume()`] does so, if it is to be checked, for code in files where more speaks for the word; [`walk()`] for all code.
//!
//! A word is believed if all of this holds, as far as the code can be read:
//! - it points just after a call instruction, in executable code;
//! - if that call says where it leads, then to the function that was found before: to its begin, or, where no rules say
//!   where functions begin, between the end of the nearest one with rules before it and the program counter; jumps are
//!   followed, and imported functions (through the procedure linkage table) may be any;
//! - if the rules for the caller lead to *its* caller, the same holds for that.
//!
//! A caller with rules that was called through a pointer is passed over if rules do not lead from it to the root, unless there is no better
//! one. A call that has returned leaves words from which rules lead to the root as well; but a call further out names another function, which was
//! called since. Such a word is passed over for one before that call with which all calls agree; without one it is believed where the function
//! that was called may have jumped on, or where guesses are wanted. That leaves calls that have returned where the call further out goes through
//! a pointer; and what a function called that then jumped on to the one at hand is passed over. So what is found is marked as
//! [`Method::Scan`], and no frame further out is trusted more ([`trust`](fn@crate::trust)).
//!
//! Checked is what is not believed unless the call says where it leads, or the rules for the caller lead to *its* caller, or the caller
//! ends its thread, or a scan finds the caller's caller, checked as well: a call through a pointer is not enough where nothing else is known.
//! The code at which a process begins is known by the stack that the kernel hands to it.
//!
//! Not for 32-bit ARM. Not here: what calls look like, see `calls`, where they lead, `called`, and what has entered code in no file, of which
//! little is known, where words are to be checked, `entry`.

mod called;
mod calls;
mod entry;
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

use called::{Called, Callee, Came, came, follows_call, nearest};
pub(crate) use called::{may_follow_call, may_have_called};
use outwards::contradiction;
pub(crate) use outwards::reaches_root;
pub use places::ReadCode;
use places::{MAX_WORDS_CHECKED, caller_at, has_rules, is_code, is_entry, is_made, is_readable, word_at};

/// So many words are looked at for one frame where guesses are wanted.
const MAX_WORDS: u64 = 2048;
/// So many frames of one stack are looked for.
const MAX_SCANS: u32 = 16;
/// So many callers of a caller are looked for that is to be checked.
const MAX_DEPTH: u32 = 4;

/// As [`walk`](fn@crate::walk), but where that ends for want of unwind information the stack is scanned.
///
/// A stack that needs no scan costs no more. Each frame that does costs 2,048 looks at the [`CodeMap`] at most; of one
/// stack there are at most 16 such frames.
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

/// Scans where a walk from `start` that found `frames` has ended with `end`, if that may help. `checked`: for code in files only, and for
/// words that are more than a guess.
pub fn resume<A: Architecture, C: CodeMap, M: Memory>(
    checked: bool,
    (code, text, memory, cache): (&C, &mut dyn ReadCode, &mut M, &mut Cache),
    start: &RegisterSet<A>,
    end: End,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let is_wanted = |frame: Walked| !checked || is_readable(code, callee(frame));
    let is_doubtful = subroutine::is_doubtful(end, frames);
    if !may_help(end, frames) || !is_doubtful && frames.last().is_some_and(|&frame| !is_wanted(frame)) {
        return end;
    }
    // Full rows from the start: no other walk, which knows fewer registers, has to be begun again.
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
        frame = match walker.caller(frame.pc, frame.is_return, true) {
            Ok(Walked { pc: Avma(0), is_return: true, .. }) => return End::Root,
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

/// Whether [`resume`] may have more than a walk that found `frames` and ended this way.
pub fn may_help(end: End, frames: &[Walked]) -> bool {
    let is_return = frames.last().is_some_and(|frame| frame.is_return);
    helps(end, is_return) || subroutine::is_doubtful(end, frames)
}

/// Whether a scan may find the caller of the last frame of a walk that ended this way. Nothing is to be found from a
/// return address that is no code: whatever it was read by is wrong.
fn helps(end: End, is_return: bool) -> bool {
    match end {
        End::NoUnwindInfo | End::BadUnwindInfo | End::RegisterUnknown => true,
        End::NotMapped => !is_return,
        _ => false,
    }
}

/// Finds the caller of `frame` and makes it the walker's current frame. `depth`: what is found is to be checked, by so many callers
/// further out at most.
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
    // What the frame pointer was when it was saved is looked up now or never.
    let fp = walker.fp().ok();
    let sp = walker.registers.sp().checked_next_multiple_of(A::WORD)?;
    let callee = nearest_kept(walker, text, callee(frame));
    // The first guess from which rules lead nowhere, and the first that what lies further out contradicts, and where.
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
    // A function may have been jumped to in a way that is not seen; that is a guess.
    let may_be = contradicted.filter(|(_, (_, came))| depth.is_none() || *came != Came::Never);
    let found = may_be.map(|(found, _)| found).or(doubtful)?;
    Some(take(walker, found))
}

/// Makes a caller that was found the walker's current frame.
fn take<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    (caller, found): (RegisterSet<A>, Walked),
) -> Walked {
    walker.restart(caller);
    found
}

/// What speaks for a word that could be a return address.
enum Weighed {
    /// It is none.
    No,
    /// It could be one that an earlier call has left, as rules do not lead from it to the root: only if there is no better one.
    Doubtful,
    /// It could be one, but that is not enough for a scan that is to be checked.
    Unsure,
    /// It is believed.
    Yes,
}

/// Whether `caller` is believed to have called `callee`. `depth` as in [`scan`].
fn weigh<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    text: &mut dyn ReadCode,
    callee: Callee,
    caller: &RegisterSet<A>,
    depth: Option<u32>,
) -> Weighed {
    let pc = Avma(caller.ip());
    // The code at which a process begins often jumps on to what calls `main`, so that it is not that which it called.
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

/// Whether a checked scan finds what has called `caller`.
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

/// As [`nearest`], which is looked for once.
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

/// The address that tells which function a frame is in.
fn callee(frame: Walked) -> Avma {
    frame.pc.offset(-i64::from(frame.is_return))
}

/// Whether what is known of `caller` leads on to what may have called it; false where nothing is known of it, or not readable, and
/// `None` where it does not. Code that signal handlers return to follows no call, but has rules that say what it is.
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
        // Conventions: they prove nothing.
        Ok(_) | Err(End::NoUnwindInfo | End::RegisterUnknown | End::BeyondCopy | End::StackUnreadable) => {
            is_called.then_some(false)
        }
        Err(_) => None,
    }
}
