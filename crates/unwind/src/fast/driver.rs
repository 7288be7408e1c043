//! Walks over words where possible, and with the walker elsewhere.

use alloc::vec::Vec;

use super::course::{FastWalk, FramePointer, Verdict, learnt};
use super::slots::{ReturnSlots, UNROLLED};
use super::{LARGE, MIDDLE, SMALL};
use crate::address::Avma;
use crate::architecture::Architecture;
use crate::cache::Key;
use crate::code::CodeMap;
use crate::frame::{End, Walked};
use crate::memory::{Memory, Window};
use crate::method::Method;
use crate::walker::Walker;

/// Number of slots collected before they are converted to frames.
const CHUNK: usize = 64;
/// Reason why a piece of the walk stopped.
enum Stop {
    /// The stack is fully walked.
    End(End),
    /// The buffer for slots is full.
    Full,
    /// The frame found is not a return address in the window.
    Other(Walked),
}

/// A walk that uses words where possible.
pub(super) struct Fast<'f, 'w, A: Architecture, C, M> {
    walker: &'f mut Walker<'w, A, C, M>,
    pc: u64,
    is_return: bool,
    /// As in [`Place`](super::Place).
    slot: usize,
    /// Whether the stack pointer is in the window, so that `slot` is valid.
    is_inside: bool,
    /// Number of frames found, including the first.
    count: usize,
    /// Whether this state is ahead of the walker's registers.
    is_ahead: bool,
}

impl<'f, 'w, A: Architecture, C: CodeMap, M: Memory> Fast<'f, 'w, A, C, M> {
    /// Starts at the walker's current frame.
    pub(super) fn new(walker: &'f mut Walker<'w, A, C, M>) -> Self {
        let pc = walker.registers.ip();
        let mut fast =
            Fast { walker, pc, is_return: false, slot: 0, is_inside: false, count: 1, is_ahead: false };
        fast.find_place();
        fast
    }

    /// Walks until the end or until `slots` is full. Returns the number of slots used.
    #[inline]
    fn drive(&mut self, slots: &mut [u32]) -> (usize, Stop) {
        let mut used = 0;
        loop {
            if slots.len() < used + UNROLLED {
                return (used, Stop::Full);
            }
            if self.count > self.walker.full_until && self.is_inside {
                match self.by_words(slots, &mut used) {
                    Verdict::End(end) => return (used, Stop::End(end)),
                    Verdict::Full => return (used, Stop::Full),
                    Verdict::Stuck => {}
                }
            }
            if let Some(stop) = self.step(slots, &mut used) {
                return (used, stop);
            }
        }
    }

    /// Walks to the end.
    pub(super) fn trace(&mut self, trail: &mut ReturnSlots) -> End {
        loop {
            let (used, stop) =
                self.drive(trail.slots.as_flattened_mut().get_mut(trail.used..).unwrap_or_default());
            trail.used += used;
            match stop {
                Stop::Other(frame) if trail.used < trail.limit => trail.put_other(frame),
                Stop::End(end) if trail.used <= trail.limit => return end,
                _ => {
                    trail.used = trail.used.min(trail.limit);
                    return End::TooManyFrames;
                }
            }
        }
    }

    /// Continues from the position of a walk over words that started at the walker's frame.
    pub(super) fn jump(&mut self, course: &FastWalk) {
        self.take(course);
        self.count = course.used + 1;
        self.is_inside = true;
    }

    /// Walks over words as far as possible.
    fn by_words(&mut self, slots: &mut [u32], used: &mut usize) -> Verdict {
        let walker = &mut *self.walker;
        let key = Key { pc: Avma(self.pc), is_return: self.is_return };
        let known = walker.cache.packed(key).or_else(|| learnt::<A, C>(walker.code, walker.cache, key));
        let Some(packed) = known else { return Verdict::Stuck };
        let fp = match walker.saved_fp {
            Some(at) => FramePointer::Saved(at),
            None => walker.registers.get(A::FP).map_or(FramePointer::Unknown, FramePointer::Value),
        };
        let mut course = FastWalk::new(key, self.slot, packed.bits, fp, *used);
        let verdict = match walker.cache.callers().entries().len() {
            LARGE => course.run::<LARGE, A, C, M>(walker.code, walker.memory, walker.cache, slots),
            MIDDLE => course.run::<MIDDLE, A, C, M>(walker.code, walker.memory, walker.cache, slots),
            _ => course.run::<SMALL, A, C, M>(walker.code, walker.memory, walker.cache, slots),
        };
        if course.used > *used {
            self.take(&course);
            self.count += course.used - *used;
            *used = course.used;
        }
        verdict
    }

    /// Makes the last frame of a walk over words the current one.
    fn take(&mut self, course: &FastWalk) {
        let walker = &mut *self.walker;
        let base = walker.memory.window().map_or(Avma(0), |window| window.base);
        walker.saved_fp = match course.fp {
            FramePointer::Word(index) => Some(base.offset((index as i64).wrapping_mul(8))),
            FramePointer::Saved(at) => Some(at),
            FramePointer::Value(_) | FramePointer::Unknown => None,
        };
        if let FramePointer::Unknown = course.fp {
            walker.registers.forget(A::FP);
        }
        walker.lost = true;
        (self.pc, self.slot) = (course.place.pc, course.place.slot);
        (self.is_return, self.is_ahead) = (true, true);
    }

    /// Finds one frame with the walker.
    #[inline(never)]
    fn step(&mut self, slots: &mut [u32], used: &mut usize) -> Option<Stop> {
        let full = self.count <= self.walker.full_until;
        self.settle();
        let caller = match self.walker.step_out(Avma(self.pc), self.is_return, full) {
            Ok(caller) => caller,
            Err(end) => return Some(Stop::End(end)),
        };
        (self.pc, self.is_return) = (caller.pc.0, caller.is_return);
        self.count += 1;
        self.find_place();
        if self.is_inside && self.is_word(&caller) {
            *slots.get_mut(*used)? = self.slot as u32;
            *used += 1;
            return None;
        }
        Some(Stop::Other(caller))
    }

    /// Returns whether a frame is of the kind that the loop yields: a return address just below the stack pointer.
    fn is_word(&self, frame: &Walked) -> bool {
        let below = Avma(self.walker.registers.sp()).offset(-8);
        frame.is_return && frame.found == Method::Cfi && frame.slot == below && self.slot != usize::MAX
    }

    /// Updates the walker's registers to the last frame found.
    fn settle(&mut self) {
        if !self.is_ahead {
            return;
        }
        if let Some(window) = self.walker.memory.window() {
            let sp = window.base.offset(8 * (self.slot as i64).wrapping_add(1));
            self.walker.registers.set(A::SP, sp.0);
        }
        self.walker.registers.set(A::PC, self.pc);
        self.walker.registers.forget_others();
        self.is_ahead = false;
    }

    /// Computes the index of the walker's stack pointer in the window.
    fn find_place(&mut self) {
        let sp = Avma(self.walker.registers.sp());
        let index = self.walker.memory.window().and_then(|window| window.index(sp));
        self.is_inside = index.is_some();
        self.slot = index.unwrap_or(0).wrapping_sub(1);
    }
}

/// Converts slots to frames.
pub(super) fn frames<'a>(window: Window<'a>, slots: &'a [u32]) -> impl ExactSizeIterator<Item = Walked> + 'a {
    slots.iter().map(move |&slot| Walked {
        pc: Avma(window.words.get(slot as usize).copied().unwrap_or(0)),
        is_return: true,
        found: Method::Cfi,
        slot: window.base.offset(8 * i64::from(slot)),
    })
}

/// Runs a whole walk without other memory than the list of frames; as [`Walker::run`].
pub(crate) fn walk<A: Architecture, C: CodeMap, M: Memory>(
    walker: &mut Walker<'_, A, C, M>,
    limit: usize,
    found: &mut Vec<Walked>,
) -> End {
    let pc = Avma(walker.registers.ip());
    found.clear();
    if limit == 0 {
        return End::TooManyFrames;
    }
    found.push(Walked { pc, is_return: false, found: Method::Sampled, slot: Avma(0) });
    let mut slots = [0; CHUNK];
    let mut fast = Fast::new(walker);
    loop {
        let (used, stop) = fast.drive(&mut slots);
        if let Some(window) = fast.walker.memory.window() {
            found.extend(frames(window, slots.get(..used).unwrap_or_default()));
        }
        if let Stop::Other(frame) = stop {
            found.push(frame);
        }
        if found.len() > limit {
            found.truncate(limit);
            return End::TooManyFrames;
        }
        if let Stop::End(end) = stop {
            return end;
        }
    }
}
