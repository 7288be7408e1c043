//! The part of a walk that needs only words: the loop, frame pointers, and addresses seen for the first time.
//!
//! The frame pointer's value is computed only when a rule needs it, and before a new rule is inserted. The frames
//! since the last computation then still have their cache entries in place, and the last of them that saved the frame
//! pointer says where.

use super::Place;
use super::slots::UNROLLED;
use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cache::{Cache, FRAMED, Key, OFFSETS, Packed, ROOT};
use crate::code::CodeMap;
use crate::frame::End;
use crate::learn::learn;
use crate::memory::{Memory, Window};
use crate::rule::Kind;

/// Reason why a walk over words stops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The stack is fully walked.
    End(End),
    /// The buffer for slots is full.
    Full,
    /// The next frame needs the walker.
    Stuck,
}

/// Known state of the frame pointer during a walk over words.
#[derive(Clone, Copy)]
pub(super) enum FramePointer {
    /// Known value.
    Value(u64),
    /// Saved in this word of the window, if the window has such a word.
    Word(usize),
    /// Saved at this address.
    Saved(Avma),
    Unknown,
}

/// State of a walk over words.
#[derive(Clone, Copy)]
pub(super) struct FastWalk {
    pub(super) place: Place,
    /// Number of slots in use.
    pub(super) used: usize,
    /// State of the frame pointer after the first `seen` slots.
    pub(super) fp: FramePointer,
    seen: usize,
    /// First frame of the walk, found with `first` slots in use.
    from: Key,
    first: usize,
}

impl FastWalk {
    /// Starts a walk at a frame; slots from `used` on are free.
    #[inline(always)]
    pub(super) fn new(from: Key, slot: usize, bits: u64, fp: FramePointer, used: usize) -> FastWalk {
        FastWalk { place: Place { pc: from.pc.0, slot, bits }, used, fp, seen: used, from, first: used }
    }

    /// Walks while words suffice, and learns rules that are not in the cache.
    ///
    /// The table of return addresses must have `N` entries. If it grows, the rest of the walk is left to the caller.
    #[inline(always)]
    pub(super) fn run<const N: usize, A: Architecture, C: CodeMap, M: Memory>(
        &mut self,
        code: &C,
        memory: &mut M,
        cache: &mut Cache,
        slots: &mut [u32],
    ) -> Verdict {
        // Only copies of this local have an address, so the compiler can keep it in registers.
        let mut at = *self;
        let verdict = loop {
            let Some(window) = memory.window() else { break Verdict::Stuck };
            let caller = match at.place.bits {
                ..OFFSETS => {
                    let Ok(entries) = cache.callers().entries().try_into() else { break Verdict::Stuck };
                    at.used += follow_offsets::<N>(entries, window.words, &mut at.place, slots, at.used);
                    if at.place.bits >= OFFSETS {
                        continue;
                    }
                    Some((at.place.slot.wrapping_add(at.place.bits as usize), None))
                }
                ROOT => break Verdict::End(End::Root),
                FRAMED => {
                    let saved = at.just_saved(cache, window, slots);
                    (at.fp, at.seen) = (saved.unwrap_or_else(|| at.saved(cache, window, slots)), at.used);
                    by_fp(window, at.place.slot, at.fp).map(|caller| (caller, Some(caller.wrapping_sub(1))))
                }
                OFFSETS..FRAMED => by_offset(cache, at.place),
                _ => {
                    let mut course = at;
                    let verdict = course.learn::<A, C>(code, window, cache, slots);
                    at = course;
                    match verdict {
                        Some(verdict) => break verdict,
                        None => continue,
                    }
                }
            };
            if let Some((slot, saved)) = caller
                && slots.len() >= at.used + UNROLLED
            {
                if let (Some(&pc), Some(found)) = (window.words.get(slot), slots.get_mut(at.used)) {
                    *found = slot as u32;
                    at.used += 1;
                    at.place = Place { pc, slot, bits: cache.callers().bits(pc) };
                    if let Some(index) = saved {
                        (at.fp, at.seen) = (FramePointer::Word(index), at.used);
                    }
                    continue;
                }
                let beyond = window.base.offset((slot as i64).wrapping_mul(8));
                if let Err(error) = memory.read_u64(beyond) {
                    break Verdict::End(error.into());
                }
            }
            let Some(window) = memory.window() else { break Verdict::Stuck };
            (at.fp, at.seen) = (at.saved(cache, window, slots), at.used);
            break if slots.len() < at.used + UNROLLED { Verdict::Full } else { Verdict::Stuck };
        };
        *self = at;
        verdict
    }

    /// Returns the cache key of the last frame found.
    fn key(&self) -> Key {
        if self.used == self.first { self.from } else { Key { pc: Avma(self.place.pc), is_return: true } }
    }

    /// Returns the location of the last frame's frame pointer, if the frame before it saved it.
    #[inline(always)]
    fn just_saved(&self, cache: &Cache, window: Window<'_>, slots: &[u32]) -> Option<FramePointer> {
        let callee = self.used.checked_sub(2).filter(|&callee| callee >= self.seen)?;
        let &pc = window.words.get(*slots.get(callee)? as usize)?;
        saved(self.place.slot, cache.callers().fp(pc))
    }

    /// Returns the frame pointer of the last frame found.
    #[inline(never)]
    fn saved(&self, cache: &Cache, window: Window<'_>, slots: &[u32]) -> FramePointer {
        let mut slot = self.place.slot;
        if self.used == self.seen {
            return self.fp;
        }
        // Each frame was found from the one before it.
        let start = if self.seen > self.first { self.seen - 1 } else { self.first };
        for &callee in slots.get(start..self.used.saturating_sub(1)).unwrap_or_default().iter().rev() {
            let Some(&pc) = window.words.get(callee as usize) else { return FramePointer::Unknown };
            if let Some(found) = saved(slot, cache.callers().fp(pc)) {
                return found;
            }
            slot = callee as usize;
        }
        if self.seen > self.first {
            return self.fp;
        }
        let table = if self.from.is_return { cache.callers() } else { cache.leaves() };
        saved(slot, table.fp(self.from.pc.0)).unwrap_or(self.fp)
    }

    /// Finds the rule of an address that is not in the cache. Returns `None` if the walk can continue.
    #[inline(never)]
    fn learn<A: Architecture, C: CodeMap>(
        &mut self,
        code: &C,
        window: Window<'_>,
        cache: &mut Cache,
        slots: &[u32],
    ) -> Option<Verdict> {
        let key = self.key();
        if key.is_return && key.pc == Avma(0) && self.used > 0 {
            // A return address of 0 is not a frame but marks the end.
            self.used -= 1;
            return Some(Verdict::End(End::Root));
        }
        // Inserting a rule may displace the entries of the frames since `seen`.
        let is_safe = cache.has_place(key);
        if !is_safe {
            (self.fp, self.seen) = (self.saved(cache, window, slots), self.used);
        }
        if let Some(packed) = learnt::<A, C>(code, cache, key) {
            self.place.bits = packed.bits;
            return None;
        }
        if is_safe {
            (self.fp, self.seen) = (self.saved(cache, window, slots), self.used);
        }
        Some(Verdict::Stuck)
    }
}

/// Follows offsets while the cache has them; `place` must have one. Writes the slots of the callers to `slots` from
/// `used` on, and returns their number.
///
/// A word is only looked up once it is known to be in the window. So if the final bits are an offset, the walk has
/// reached the end of the window or of `slots`.
#[inline(always)]
fn follow_offsets<const N: usize>(
    entries: &[u64; N],
    words: &[u64],
    place: &mut Place,
    slots: &mut [u32],
    used: usize,
) -> usize {
    let Place { mut pc, mut slot, mut bits } = *place;
    let slots = slots.get_mut(used..).unwrap_or_default().as_chunks_mut::<UNROLLED>().0;
    for (number, slots) in slots.iter_mut().enumerate() {
        for (index, found) in slots.iter_mut().enumerate() {
            let next = slot.wrapping_add(bits as usize);
            let Some(&word) = words.get(next) else {
                *place = Place { pc, slot, bits };
                return UNROLLED * number + index;
            };
            (*found, slot, pc) = (next as u32, next, word);
            bits = entries[pc as usize & (N - 1)] ^ pc;
            if bits >= OFFSETS {
                *place = Place { pc, slot, bits };
                return UNROLLED * number + index + 1;
            }
        }
    }
    *place = Place { pc, slot, bits };
    UNROLLED * slots.len()
}

/// Finds the rule of an address and inserts it into the cache. Returns `None` if that is not possible or the cache is
/// full.
#[inline(never)]
pub(super) fn learnt<A: Architecture, C: CodeMap>(code: &C, cache: &mut Cache, key: Key) -> Option<Packed> {
    if key.pc.0 >> 63 != 0 {
        return None;
    }
    cache.recall(key).or_else(|| learn::<A, C>(code, cache, key).ok()?.1)
}

/// Returns the location of a frame pointer saved `words` words below the CFA; `slot` holds the return address.
#[inline(always)]
fn saved(slot: usize, words: u8) -> Option<FramePointer> {
    (words != 0).then(|| FramePointer::Word(slot.wrapping_add(1).wrapping_sub(words.into())))
}

/// Handles a frame so large that its rule is in the list. Returns the slot of the caller, and the word in which the
/// frame pointer was saved, if it was. `None` for rules of other kinds.
#[inline(always)]
fn by_offset(cache: &Cache, place: Place) -> Option<(usize, Option<usize>)> {
    let rule = cache.listed(place.bits)?;
    if rule.kind != Kind::Sp || rule.value % 8 != 0 {
        return None;
    }
    let next = place.slot.wrapping_add_signed(rule.value as isize / 8);
    let saved = next.wrapping_add(1).wrapping_add_signed(rule.fp.into());
    Some((next, (rule.fp != 0).then_some(saved)))
}

/// Returns the slot of the caller of a frame with a frame pointer, if that is further up.
#[inline(always)]
fn by_fp(window: Window<'_>, slot: usize, fp: FramePointer) -> Option<usize> {
    let value = match fp {
        FramePointer::Value(value) => value,
        FramePointer::Word(index) => *window.words.get(index)?,
        FramePointer::Saved(at) => *window.words.get(window.index(at)?)?,
        FramePointer::Unknown => return None,
    };
    // An unaligned or lower address becomes larger than any index.
    let saved = value.wrapping_sub(window.base.0).rotate_right(3) as usize;
    // `slot` may be just before the first word (wrapped).
    (saved < window.words.len() && saved + 2 > slot.wrapping_add(1)).then_some(saved + 1)
}
