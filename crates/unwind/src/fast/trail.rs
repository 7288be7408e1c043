//! The frames of a stack as the loop finds them, for those who walk more often than they look at frames.

use alloc::vec::Vec;

use super::course::{FastWalk, FramePointer, Verdict};
use super::driver::{Fast, frames};
use super::{LARGE, MIDDLE, SMALL, UNROLLED};
use crate::address::Avma;
use crate::cache::{Cache, Key};
use crate::code::CodeMap;
use crate::memory::Memory;
use crate::method::Method;
use crate::walk::{End, Walked, Walker};
use crate::x86_64::{FP, Registers};

/// The frames of one stack, four bytes each: for those who walk more often than they look at frames.
#[derive(Debug, Default)]
pub struct ReturnSlots {
    /// Where the return addresses of callers are, innermost first: in words from the window's base. [`ReturnSlots::OTHER`]
    /// for frames that are listed whole.
    pub(super) slots: Vec<[u32; UNROLLED]>,
    pub(super) used: usize,
    /// Position among the callers, and the frame.
    others: Vec<(usize, Walked)>,
    pub(super) limit: usize,
}

impl ReturnSlots {
    /// What stands for a frame that is no return address in the window.
    pub const OTHER: u32 = u32::MAX;

    /// Room for so many callers; a walk that finds more ends there. Nothing is allocated afterwards, except where
    /// there are frames that are no return addresses in the window: these are listed whole.
    pub fn new(limit: usize) -> ReturnSlots {
        let slots = alloc::vec![[0; UNROLLED]; limit / UNROLLED + 2];
        ReturnSlots { slots, used: 0, others: Vec::with_capacity(8), limit }
    }

    /// The callers of the frame that the walk began with, innermost first: the positions of their return addresses,
    /// in words from the window's base, or [`ReturnSlots::OTHER`].
    pub fn slots(&self) -> &[u32] {
        self.slots.as_flattened().get(..self.used).unwrap_or_default()
    }

    /// The frames that are [`ReturnSlots::OTHER`] in [`ReturnSlots::slots`], with their positions there.
    pub fn others(&self) -> &[(usize, Walked)] {
        &self.others
    }

    pub(super) fn put_other(&mut self, frame: Walked) {
        if let Some(slot) = self.slots.as_flattened_mut().get_mut(self.used) {
            *slot = ReturnSlots::OTHER;
            self.others.push((self.used, frame));
            self.used += 1;
        }
    }
}

/// As [`walk`](crate::walk()), but yields only where return addresses are. `memory` should hand out a window.
#[inline]
pub fn trace<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
    trail: &mut ReturnSlots,
) -> End {
    match cache.callers().entries().len() {
        LARGE => trace_sized::<LARGE, C, M>(code, memory, cache, start, trail),
        MIDDLE => trace_sized::<MIDDLE, C, M>(code, memory, cache, start, trail),
        _ => trace_sized::<SMALL, C, M>(code, memory, cache, start, trail),
    }
}

/// The same for one size of the table. Nearly all walks are no more than what stands here.
#[inline(never)]
fn trace_sized<const N: usize, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
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
    let fp = start.get(FP).map_or(FramePointer::Unknown, FramePointer::Value);
    let mut course = FastWalk::new(leaf, index.wrapping_sub(1), bits, fp, 0);
    let verdict = course.run::<N, C, M>(code, memory, cache, trail.slots.as_flattened_mut());
    trail.used = course.used;
    match verdict {
        Verdict::End(end) if course.used <= trail.limit => end,
        _ => trace_on(code, memory, cache, start, trail, Some(course)),
    }
}

/// The rest of a walk that got so far by words, or all of it.
#[cold]
#[inline(never)]
fn trace_on<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
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

/// As [`walk`](crate::walk()), by a trail that the cache keeps.
#[inline]
pub(crate) fn walk<C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
    limit: usize,
    found: &mut Vec<Walked>,
) -> End {
    found.clear();
    let Some(callers) = limit.checked_sub(1) else { return End::TooManyFrames };
    let mut trail = core::mem::take(&mut cache.trail);
    if trail.limit != callers {
        trail = ReturnSlots::new(callers);
    }
    let end = trace(code, memory, cache, start, &mut trail);
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
