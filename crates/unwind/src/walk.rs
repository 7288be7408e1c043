//! Entry point of the walk: from registers and stack memory to a list of frames.

use alloc::vec::Vec;

use crate::architecture::Architecture;
use crate::cache::Cache;
use crate::code::CodeMap;
use crate::fast;
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::registers::RegisterSet;
use crate::walker::Walker;

/// Finds the callers of `start`, innermost first. Clears `frames` and fills it with at most `limit` frames, the first
/// of which is `start` itself. The returned reason refers to the last frame, or to a caller that is in no frame.
pub fn walk<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    limit: usize,
    frames: &mut Vec<Walked>,
) -> End {
    let by_words = fast::serves::<A>() && memory.window().is_some();
    let end = if by_words && !cache.is_fixed() {
        fast::walk(code, memory, cache, start, limit, frames)
    } else {
        let mut walker = Walker::new(code, memory, cache, start);
        let mut restarts = 0;
        loop {
            let end = match by_words {
                true => fast::walk_in_place(&mut walker, limit, frames),
                false => walker.run(limit, frames),
            };
            if end != End::RegisterUnknown || !walker.begin_again(start, frames.len(), &mut restarts) {
                break end;
            }
        }
    };
    // The link register of a new thread still has its creator's return address, behind which the zeros of the new stack look like the root.
    let may_begin = end != End::Root || A::LR.is_some() && frames.len() == 2;
    if may_begin && A::begins_thread(start, memory) {
        frames.truncate(1);
        return End::Root;
    }
    if end == End::ProbedReturn && frames.len() > 1 {
        // The trampoline that replaced a return address called nobody.
        frames.pop();
    }
    end
}
