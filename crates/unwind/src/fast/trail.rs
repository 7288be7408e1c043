//! The frames of a stack as the loop finds them, for those who walk more often than they look at frames.

use alloc::vec::Vec;

use super::driver::{Fast, frames};
use super::{FramePointer, LARGE, MIDDLE, Passed, Place, SMALL, UNROLLED, Verdict, glide, is_learnt, run};
use crate::address::Avma;
use crate::cache::{Cache, Key, OFFSETS, ROOT};
use crate::code::CodeMap;
use crate::memory::Memory;
use crate::method::Method;
use crate::walk::{End, Walked, Walker};
use crate::x86_64::{FP, Registers};

/// The frames of one stack, four bytes each: for those who walk more often than they look at frames.
#[derive(Debug, Default)]
pub struct Trail {
    /// Where the return addresses of callers are, innermost first: in words from the window's base. [`Trail::OTHER`]
    /// for frames that are listed whole.
    pub(super) slots: Vec<[u32; UNROLLED]>,
    pub(super) used: usize,
    /// Position among the callers, and the frame.
    others: Vec<(usize, Walked)>,
    pub(super) limit: usize,
}

impl Trail {
    /// What stands for a frame that is no return address in the window.
    pub const OTHER: u32 = u32::MAX;

    /// Room for so many callers; a walk that finds more ends there. Nothing is allocated afterwards, except where
    /// there are frames that are no return addresses in the window: these are listed whole.
    pub fn new(limit: usize) -> Trail {
        let slots = alloc::vec![[0; UNROLLED]; limit / UNROLLED + 2];
        Trail { slots, used: 0, others: Vec::with_capacity(8), limit }
    }

    /// The callers of the frame that the walk began with, innermost first: the positions of their return addresses,
    /// in words from the window's base, or [`Trail::OTHER`].
    pub fn slots(&self) -> &[u32] {
        self.slots.as_flattened().get(..self.used).unwrap_or_default()
    }

    /// The frames that are [`Trail::OTHER`] in [`Trail::slots`], with their positions there.
    pub fn others(&self) -> &[(usize, Walked)] {
        &self.others
    }

    pub(super) fn put_other(&mut self, frame: Walked) {
        if let Some(slot) = self.slots.as_flattened_mut().get_mut(self.used) {
            *slot = Trail::OTHER;
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
    trail: &mut Trail,
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
    trail: &mut Trail,
) -> End {
    trail.used = 0;
    let place = by_offsets::<N, M>(memory, cache, start, trail);
    if let Some(place) = place
        && place.bits == ROOT
        && trail.used <= trail.limit
        && trail.others.is_empty()
    {
        return End::Root;
    }
    trace_on::<N, C, M>(code, memory, cache, start, trail, place)
}

/// A walk as far as it goes by offsets from the stack pointer.
#[inline(always)]
fn by_offsets<const N: usize, M: Memory>(
    memory: &M,
    cache: &Cache,
    start: &Registers,
    trail: &mut Trail,
) -> Option<Place> {
    let window = memory.window()?;
    let pc = start.ip();
    let slot = window.index(Avma(start.sp()))?.wrapping_sub(1);
    let bits = cache.leaves().bits(pc);
    let entries: &[u64; N] = cache.callers().entries().try_into().ok()?;
    if bits >= OFFSETS {
        return None;
    }
    let mut place = Place { pc, slot, bits };
    trail.used = run(entries, window.words, &mut place, &mut trail.slots);
    (trail.used > 0).then_some(place)
}

/// The rest of a walk that is at `place`, or all of it.
#[inline(never)]
fn trace_on<const N: usize, C: CodeMap, M: Memory>(
    code: &C,
    memory: &mut M,
    cache: &mut Cache,
    start: &Registers,
    trail: &mut Trail,
    place: Option<Place>,
) -> End {
    trail.others.clear();
    let leaf = Key { pc: Avma(start.ip()), is_return: false };
    let mut place = place;
    if place.is_none() && cache.packed(leaf).is_none() && is_learnt(code, cache, leaf) {
        place = by_offsets::<N, M>(memory, cache, start, trail);
    }
    let mut fp = FramePointer { saved: None, value: start.get(FP) };
    let mut at = None;
    if let Some(mut place) = place {
        let passed = Passed { count: trail.used, from: leaf };
        let slots = trail.slots.as_flattened_mut();
        let process = (code, &mut *memory, &mut *cache);
        let verdict = glide::<N, C, M>(process, (&mut place, &mut fp), slots, &mut trail.used, passed);
        if trail.used > trail.limit {
            trail.used = trail.limit;
            return End::TooManyFrames;
        }
        if let Verdict::End(end) = verdict {
            return end;
        }
        at = Some(place);
    }
    let mut walker = Walker::new(code, memory, cache, start);
    let mut fast = Fast::new(&mut walker);
    if let Some(place) = at {
        fast.jump(place, fp, trail.used);
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
        trail = Trail::new(callers);
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
