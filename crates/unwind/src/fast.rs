//! The walk over a stack that is at hand as words: a few instructions a frame where rules are of the usual kind.
//!
//! Most frames are found by adding a number of words to the stack pointer and reading the return address below it. The
//! loop here does nothing else: it looks the return address up, adds, reads, and keeps where it read. What it meets
//! beside that goes to the [`Walker`](crate::walk::Walker) for one frame. The frame pointer is not followed; where a rule needs it, the
//! frames just passed say which of them saved it. Results are those of the walker alone, whatever the cache knows.
//!
//! Here is the loop and what else can be done with words alone; `driver` brings in the walker, and `trail` is for those
//! who want no more than the loop yields. Not here: how rules are found (`walk`) and remembered (`cache`).

mod driver;
mod trail;

pub(crate) use driver::walk;
pub use trail::{Trail, trace};

use crate::address::Avma;
use crate::cache::{Cache, Direct, FRAMED, Key, LAST_BITS, OFFSETS, PACKED_BITS, ROOT};
use crate::memory::Window;

/// Frames that the loop finds in a row. A piece of memory for slots that has less room left counts as full.
const UNROLLED: usize = 8;

/// Where a walk is that goes by words.
#[derive(Clone, Copy)]
struct Place {
    /// The program counter of the frame that was found last.
    pc: u64,
    /// The word below its stack pointer; for return addresses that is where they are. Wraps below the first word.
    slot: usize,
    /// What the cache says of `pc`.
    bits: u64,
}

/// Why it goes on no further.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// This is the outermost frame.
    Root,
    /// There is no more room for slots.
    Full,
    /// It takes more than is here.
    Stuck,
}

/// Follows offsets while the cache has them. Where the callers are goes to `slots`; returns how many there are.
///
/// A stack word of the loop's is only looked up once it is known to be in the window, so a place whose bits are an
/// offset is either at the window's end or at that of `slots`.
#[inline(always)]
fn run<const N: usize>(
    entries: &[u64; N],
    words: &[u64],
    place: &mut Place,
    slots: &mut [[u32; UNROLLED]],
) -> usize {
    let Place { mut pc, mut slot, mut bits } = *place;
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

const LARGE: usize = 1 << LAST_BITS;
const MIDDLE: usize = 1 << (LAST_BITS - 2);
const SMALL: usize = 1 << PACKED_BITS;

/// The same for whatever size the table has.
fn run_by_size(table: &Direct, words: &[u64], place: &mut Place, slots: &mut [u32]) -> usize {
    let slots = slots.as_chunks_mut().0;
    let entries = table.entries();
    if let Some(entries) = entries.first_chunk::<LARGE>() {
        run(entries, words, place, slots)
    } else if let Some(entries) = entries.first_chunk::<MIDDLE>() {
        run(entries, words, place, slots)
    } else if let Some(entries) = entries.first_chunk::<SMALL>() {
        run(entries, words, place, slots)
    } else {
        0
    }
}

/// The frame pointer during a walk by words.
#[derive(Clone, Copy)]
struct FramePointer {
    /// Where it was saved, if it was.
    saved: Option<Avma>,
    /// Its value, if it was not.
    value: Option<u64>,
}

/// Goes on by the usual rules. The last `passed` of the `used` slots were found since the frame pointer is what `fp`
/// says, the first of them from the frame `before`.
fn glide(
    cache: &Cache,
    window: Window<'_>,
    (place, fp): (&mut Place, &mut FramePointer),
    slots: &mut [u32],
    used: &mut usize,
    (mut passed, mut before): (usize, Key),
) -> Verdict {
    loop {
        if place.pc == 0 && passed > 0 {
            // No frame: it marks the end.
            *used -= 1;
            return Verdict::Root;
        }
        if place.bits == ROOT {
            return Verdict::Root;
        }
        let found = slots.get(*used - passed..*used).unwrap_or_default();
        if let Some(saved) = find_saved(cache, window, found, before) {
            fp.saved = Some(saved);
        }
        if slots.len() < *used + UNROLLED {
            return Verdict::Full;
        }
        before = Key { pc: Avma(place.pc), is_return: true };
        if place.bits >= OFFSETS {
            let slot = (place.bits == FRAMED).then(|| by_fp(window, place.slot, fp)).flatten();
            let (Some((slot, pc)), Some(found)) = (slot, slots.get_mut(*used)) else {
                return Verdict::Stuck;
            };
            (*place, *found) = (Place { pc, slot, bits: cache.callers().bits(pc) }, slot as u32);
            *used += 1;
            if place.bits >= OFFSETS {
                passed = 1;
                continue;
            }
            before = Key { pc: Avma(pc), is_return: true };
        }
        let free = slots.get_mut(*used..).unwrap_or_default();
        passed = run_by_size(cache.callers(), window.words, place, free);
        *used += passed;
        if place.bits < OFFSETS && slots.len() >= *used + UNROLLED {
            // The end of the window. What was passed has to be looked at for the frame pointer.
            let found = slots.get(*used - passed..*used).unwrap_or_default();
            fp.saved = find_saved(cache, window, found, before).or(fp.saved);
            return Verdict::Stuck;
        }
    }
}

/// Where the frame pointer was saved last by frames just passed: these slots were found, the first of them from the
/// frame `before`.
fn find_saved(cache: &Cache, window: Window<'_>, slots: &[u32], before: Key) -> Option<Avma> {
    slots.iter().enumerate().rev().find_map(|(index, &slot)| {
        let callee = match index.checked_sub(1) {
            Some(index) => cache.callers().get(*window.words.get(*slots.get(index)? as usize)?)?,
            None => cache.packed(before)?,
        };
        let words = i64::from(slot) + 1 - i64::from(callee.fp);
        (callee.fp != 0).then(|| window.base.offset(8 * words))
    })
}

/// The slot and return address of a frame that keeps a frame pointer.
fn by_fp(window: Window<'_>, slot: usize, fp: &mut FramePointer) -> Option<(usize, u64)> {
    let value = match fp.saved {
        Some(at) => *window.words.get(window.index(at)?)?,
        None => fp.value?,
    };
    let caller = window.index(Avma(value))?.wrapping_add(1);
    if caller.wrapping_add(1) <= slot.wrapping_add(1) {
        return None;
    }
    let &pc = window.words.get(caller)?;
    fp.saved = Some(Avma(value));
    Some((caller, pc))
}
