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

pub(crate) use driver::walk as walk_in_place;
pub(crate) use trail::walk;
pub use trail::{Trail, trace};

use crate::address::Avma;
use crate::cache::{ABSENT, Cache, Direct, FRAMED, Key, LAST_BITS, OFFSETS, PACKED_BITS, Packed, ROOT};
use crate::code::CodeMap;
use crate::learn::learn;
use crate::memory::{Memory, Window};
use crate::rule::{Kind, Rule};
use crate::walk::End;
use crate::x86_64::X86_64;

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
    /// The walk is over.
    End(End),
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

/// Frames that were found since the frame pointer was looked after: the last of the slots.
struct Passed {
    count: usize,
    /// The frame that the first of them was found from.
    from: Key,
}

/// Goes on by the usual rules, and learns those that are not known yet. The last `passed` of the `used` slots were found
/// since the frame pointer is what `fp` says.
///
/// The table has `N` entries; should it grow, the rest is left to others.
fn glide<const N: usize, C: CodeMap, M: Memory>(
    (code, memory, cache): (&C, &mut M, &mut Cache),
    (place, fp): (&mut Place, &mut FramePointer),
    slots: &mut [u32],
    used: &mut usize,
    mut passed: Passed,
) -> Verdict {
    let mut has_moved = passed.count > 0;
    let verdict = loop {
        let Some(window) = memory.window() else { return Verdict::Stuck };
        if place.pc == 0 && has_moved {
            // No frame: it marks the end.
            *used -= 1;
            return Verdict::End(End::Root);
        }
        let key = Key { pc: Avma(place.pc), is_return: true };
        if place.bits > ABSENT {
            if !is_learnt(code, cache, key) {
                break Verdict::Stuck;
            }
            place.bits = cache.callers().bits(place.pc);
        }
        if place.bits == ROOT {
            return Verdict::End(End::Root);
        }
        if slots.len() < *used + UNROLLED {
            break Verdict::Full;
        }
        if place.bits < OFFSETS {
            if passed.count == 0 {
                passed.from = key;
            }
            let (free, Ok(entries)) =
                (slots.get_mut(*used..).unwrap_or_default(), cache.callers().entries().try_into())
            else {
                break Verdict::Stuck;
            };
            let count = run::<N>(entries, window.words, place, free.as_chunks_mut().0);
            passed.count += count;
            *used += count;
            has_moved |= count > 0;
            if place.bits < OFFSETS && slots.len() >= *used + UNROLLED {
                let beyond = window.base.offset(8 * place.slot.wrapping_add(place.bits as usize) as i64);
                if let Err(error) = memory.read_u64(beyond) {
                    return Verdict::End(error.into());
                }
                break Verdict::Stuck;
            }
            continue;
        }
        let far = cache.listed(place.bits).and_then(|rule| by_offset(window, place.slot, rule));
        if let Some((slot, _)) = far
            && slot >= window.words.len()
        {
            let beyond = window.base.offset(8 * slot as i64);
            if let Err(error) = memory.read_u64(beyond) {
                return Verdict::End(error.into());
            }
            break Verdict::Stuck;
        }
        fp.follow(cache, window, slots.get(*used - passed.count..*used).unwrap_or_default(), passed.from);
        passed.count = 0;
        let slot = match far {
            Some((slot, saved)) => {
                fp.saved = saved.or(fp.saved);
                Some(slot)
            }
            None if place.bits == FRAMED => by_fp(window, place.slot, fp),
            None => None,
        };
        let (Some(slot), Some(found)) = (slot, slots.get_mut(*used)) else { return Verdict::Stuck };
        let Some(&pc) = window.words.get(slot) else { return Verdict::Stuck };
        (*place, *found) = (Place { pc, slot, bits: cache.callers().bits(pc) }, slot as u32);
        *used += 1;
        has_moved = true;
    };
    let Some(window) = memory.window() else { return Verdict::Stuck };
    fp.follow(cache, window, slots.get(*used - passed.count..*used).unwrap_or_default(), passed.from);
    verdict
}

/// Has the cache learn a rule. False if there is none to learn, or no room.
#[inline(never)]
fn is_learnt<C: CodeMap>(code: &C, cache: &mut Cache, key: Key) -> bool {
    let is_user = key.pc.0 >> 63 == 0;
    is_user
        && (cache.recall(key).is_some() || learn::<X86_64, C>(code, cache, key).is_ok())
        && cache.packed(key).is_some()
}

impl FramePointer {
    /// Looks after it for frames just passed: these slots were found, the first of them from the frame `from`.
    #[inline(never)]
    fn follow(&mut self, cache: &Cache, window: Window<'_>, slots: &[u32], from: Key) {
        for (index, &slot) in slots.iter().enumerate().rev() {
            let callee = match index.checked_sub(1).and_then(|index| slots.get(index)) {
                Some(&slot) => window.words.get(slot as usize).and_then(|&pc| cache.callers().peek(pc)),
                None => cache.packed(from),
            };
            match callee {
                Some(Packed { bits: ..OFFSETS, fp: 0 }) => {}
                Some(Packed { bits: ..OFFSETS, fp }) => {
                    let words = i64::from(slot) + 1 - i64::from(fp);
                    self.saved = Some(window.base.offset(8 * words));
                    return;
                }
                // It was forgotten meanwhile, because others were learnt.
                _ => {
                    *self = FramePointer { saved: None, value: None };
                    return;
                }
            }
        }
    }
}

/// The slot of a frame that is so far away that its rule is in the list, and where the frame pointer was saved if that
/// rule says so. `None` for rules of other kinds.
fn by_offset(window: Window<'_>, slot: usize, rule: Rule) -> Option<(usize, Option<Avma>)> {
    if rule.kind != Kind::Sp || rule.value % 8 != 0 {
        return None;
    }
    let next = slot.wrapping_add(usize::try_from(rule.value / 8).ok()?);
    let saved = window.base.offset(8 * (next as i64 + 1 + i64::from(rule.fp)));
    Some((next, (rule.fp != 0).then_some(saved)))
}

/// The slot of the caller of a frame that keeps a frame pointer.
fn by_fp(window: Window<'_>, slot: usize, fp: &mut FramePointer) -> Option<usize> {
    let value = match fp.saved {
        Some(at) => *window.words.get(window.index(at)?)?,
        None => fp.value?,
    };
    let caller = window.index(Avma(value))?.wrapping_add(1);
    if caller.wrapping_add(1) <= slot.wrapping_add(1) {
        return None;
    }
    window.words.get(caller)?;
    fp.saved = Some(Avma(value));
    Some(caller)
}
