//! Walks that yield slots instead of frames, for callers that walk more often than they look at frames.

use alloc::vec::Vec;

use super::course::{FastWalk, FramePointer, Verdict};
use super::driver::{Fast, frames};
use super::slots::ReturnSlots;
use super::{LARGE, MIDDLE, SMALL};
use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cache::{Cache, Key};
use crate::code::CodeMap;
use crate::frame::{End, Walked};
use crate::memory::Memory;
use crate::method::Method;
use crate::registers::RegisterSet;
use crate::walker::Walker;

/// As [`walk`](crate::walk()), but yields only the locations of return addresses. `memory` should provide a window. Does
/// not compile for an architecture with a link register.
#[inline]
pub fn trace<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    trail: &mut ReturnSlots,
) -> End {
    const { assert!(super::serves::<A>()) }
    trace_words::<A, C, M>(code, memory, cache, start, trail)
}

/// Traces a stack of any architecture that is [supported](super::serves).
#[inline]
fn trace_words<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    trail: &mut ReturnSlots,
) -> End {
    match cache.callers().entries().len() {
        LARGE => trace_sized::<LARGE, A, C, M>(code, memory, cache, start, trail),
        MIDDLE => trace_sized::<MIDDLE, A, C, M>(code, memory, cache, start, trail),
        _ => trace_sized::<SMALL, A, C, M>(code, memory, cache, start, trail),
    }
}

/// Traces a stack with a cache table of `N` entries. Nearly all walks run only the code in this function.
#[inline(never)]
fn trace_sized<const N: usize, A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    trail: &mut ReturnSlots,
) -> End {
    trail.used = 0;
    trail.others.clear();
    let sp = Avma(start.sp());
    let Some(index) = memory.window().and_then(|window| window.index(sp)) else {
        return trace_on(code, memory, cache, start, trail, None);
    };
    let leaf = Key { pc: Avma(start.ip()), is_return: false };
    let bits = cache.leaves().bits(leaf.pc.0);
    let fp = start.get(A::FP).map_or(FramePointer::Unknown, FramePointer::Value);
    let mut course = FastWalk::new(leaf, index.wrapping_sub(1), bits, fp, 0);
    let verdict = course.run::<N, A, C, M>(code, memory, cache, trail.slots.as_flattened_mut());
    trail.used = course.used;
    match verdict {
        Verdict::End(end) if course.used <= trail.limit => end,
        _ => trace_on(code, memory, cache, start, trail, Some(course)),
    }
}

/// Walks the rest of a stack from the position of `course`, or all of it if that is `None`.
#[cold]
#[inline(never)]
fn trace_on<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    trail: &mut ReturnSlots,
    course: Option<FastWalk>,
) -> End {
    if trail.used > trail.limit {
        trail.used = trail.limit;
        return End::TooManyFrames;
    }
    let mut walker = Walker::new(code, memory, cache, start);
    let mut fast = Fast::new(&mut walker);
    if let Some(course) = course.filter(|course| course.used > 0) {
        fast.jump(&course);
    }
    let mut end = fast.trace(trail);
    let mut restarts = 0;
    while end == End::RegisterUnknown && walker.begin_again(start, trail.used + 1, &mut restarts) {
        trail.used = 0;
        trail.others.clear();
        end = Fast::new(&mut walker).trace(trail);
    }
    end
}

/// As [`walk`](crate::walk()), using a buffer kept in the cache.
#[inline]
pub(crate) fn walk<A: Architecture, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &RegisterSet<A>,
    limit: usize,
    found: &mut Vec<Walked>,
) -> End {
    found.clear();
    let Some(callers) = limit.checked_sub(1) else { return End::TooManyFrames };
    let mut trail = core::mem::take(&mut cache.trail);
    if trail.limit != callers {
        trail = ReturnSlots::new(callers);
    }
    let end = trace_words(code, memory, cache, start, &mut trail);
    found.push(Walked { pc: Avma(start.ip()), is_return: false, found: Method::Sampled, slot: Avma(0) });
    if let Some(window) = memory.window() {
        let mut from = 0;
        for &(position, frame) in trail.others() {
            found.extend(frames(window, trail.slots().get(from..position).unwrap_or_default()));
            found.push(frame);
            from = position + 1;
        }
        found.extend(frames(window, trail.slots().get(from..).unwrap_or_default()));
    }
    cache.trail = trail;
    end
}
