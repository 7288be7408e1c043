//! A direct-mapped table of packed rules by program counter: eight bytes an entry, and one more for the frame pointer.
//!
//! An entry is the address XORed with its packed rule, which has [`PACKED_BITS`] bits. Where the entry is says so many
//! low bits of the address and more, so XORing it with an address yields the rule if the address is the same in all of
//! its bits, and else a number that is larger than any rule: one comparison tells both whether the entry is the right
//! one and whether its rule is of the usual kind.
//!
//! An entry that another one takes the place of goes to a second place, which differs in the highest bit, so pairs of
//! addresses that meet are both kept. The smallest table has no second places: all bits of its places count for the
//! comparison above.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::rule::{Kind, Rule};

/// Bits of a packed rule; no table has fewer entries than there are packed rules.
pub(crate) const PACKED_BITS: u32 = 12;
/// Packed rules from here on are no offsets: they are positions in a list of rules, counted from here.
pub(crate) const OFFSETS: u64 = 1 << 11;
/// The packed rule that says that there is none. What is larger belongs to another address.
pub(crate) const ABSENT: u64 = (1 << PACKED_BITS) - 1;
/// The packed rule of an outermost frame.
pub(crate) const ROOT: u64 = ABSENT - 1;
/// The packed rule of code that keeps a frame pointer: the CFA is two words above what it points at, which is the saved
/// one.
pub(crate) const FRAMED: u64 = ABSENT - 2;
/// How many rules can be in the list.
pub(crate) const MAX_LISTED: usize = (FRAMED - OFFSETS) as usize;
/// What [`FRAMED`] stands for.
const FRAMED_RULE: Rule = Rule { kind: Kind::Fp, ra: -1, fp: -2, value: 16 };
/// Entries of the largest table, as a power of two. Compilers, the widest programs measured, return to some 10,000
/// places.
pub(crate) const LAST_BITS: u32 = 16;

/// The table. It has no entries at all, or a power of two from `1 << PACKED_BITS` on.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    entries: Vec<u64>,
    /// Beside each entry: how many words below the CFA the frame pointer is saved; 0 if it is unchanged. Only of
    /// meaning where the packed rule is an offset.
    fps: Vec<u8>,
    /// How often an entry was pushed out since the table grew.
    pushed_out: u32,
    /// Places written to since all was forgotten; more than [`MANY`] stand for any.
    touched: Vec<u32>,
}

/// A table grows after so many entries were pushed out by others: the smallest soon, because it has no second places.
const MAX_PUSHED_OUT: [u32; 2] = [16, 64];

/// A rule as the table holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) bits: u64,
    pub(crate) fp: u8,
}

impl Packed {
    /// A rule that needs no list: the CFA is so many words above the stack pointer, the return address just below it,
    /// and two that are frequent. `None` for all others, and where a number is too large.
    #[inline]
    pub(crate) fn usual(rule: Rule) -> Option<Packed> {
        if rule.kind != Kind::Sp {
            return match rule.kind {
                Kind::Fp if rule == FRAMED_RULE => Some(Packed { bits: FRAMED, fp: 2 }),
                Kind::Root if rule == Rule::only(Kind::Root) => Some(Packed { bits: ROOT, fp: 0 }),
                _ => None,
            };
        }
        // Words and a remainder that makes the number too large, like a sign.
        let bits = u64::from((rule.value as u32).rotate_right(3));
        let fp = u8::try_from(-i32::from(rule.fp)).ok()?;
        (rule.ra == -1 && (1..OFFSETS).contains(&bits)).then_some(Packed { bits, fp })
    }

    /// The rule at `position` in the list.
    pub(crate) fn listed(position: usize) -> Option<Packed> {
        (position < MAX_LISTED).then_some(Packed { bits: OFFSETS + position as u64, fp: 0 })
    }

    /// The rule; the list is asked for all but offsets.
    pub(crate) fn rule(self, list: &[Rule]) -> Option<Rule> {
        if self.bits < OFFSETS {
            let value = 8 * self.bits as i32;
            return Some(Rule { kind: Kind::Sp, ra: -1, fp: -i16::from(self.fp), value });
        }
        match self.bits {
            ROOT => Some(Rule::only(Kind::Root)),
            FRAMED => Some(FRAMED_RULE),
            bits => list.get((bits - OFFSETS) as usize).copied(),
        }
    }
}

/// Places written to that are remembered: what a short-lived process leaves behind is cleared one by one.
const MANY: usize = 100;

/// Places that addresses below `1 << PACKED_BITS` have.
const FIRST_PLACES: usize = 1 << PACKED_BITS;

/// What is in a place without a rule: no address yields a rule there. But for the first places that is a number that is
/// in none of their addresses.
const EMPTY: u64 = 1;

fn empty(place: usize) -> u64 {
    if place < FIRST_PLACES { !(place as u64) } else { EMPTY }
}

/// Whether there is no rule in a place.
fn is_empty(place: usize, entry: u64) -> bool {
    entry == empty(place)
}

/// Empties the first places.
fn mark_first(entries: &mut [u64]) {
    entries.iter_mut().take(FIRST_PLACES).enumerate().for_each(|(place, entry)| *entry = empty(place));
}

/// The address of the entry at `place`.
fn address(place: usize, entry: u64) -> u64 {
    entry & !ABSENT | place as u64 & ABSENT
}

impl Direct {
    /// A table with `1 << bits` entries.
    pub(crate) fn new(bits: u32) -> Direct {
        let count = 1 << bits.clamp(PACKED_BITS, LAST_BITS);
        let mut entries = vec![EMPTY; count];
        mark_first(&mut entries);
        Direct { entries, fps: vec![0; count], pushed_out: 0, touched: Vec::with_capacity(MANY + 1) }
    }

    /// The entries.
    #[inline]
    pub(crate) fn entries(&self) -> &[u64] {
        &self.entries
    }

    fn place(&self, pc: u64) -> usize {
        pc as usize & self.entries.len().wrapping_sub(1)
    }

    /// The packed rule of an address, or more than any packed rule has.
    #[inline]
    pub(crate) fn bits(&self, pc: u64) -> u64 {
        self.entries.get(self.place(pc)).map_or(u64::MAX, |entry| entry ^ pc)
    }

    /// What is known of an address.
    #[inline]
    pub(crate) fn get(&self, pc: u64) -> Option<Packed> {
        let place = self.place(pc);
        let bits = self.entries.get(place)? ^ pc;
        (bits < ABSENT).then(|| Packed { bits, fp: self.fps.get(place).copied().unwrap_or(0) })
    }

    /// How many words below the CFA an address has its caller's frame pointer, if it is in its place and its rule is an
    /// offset; 0 if that is unchanged.
    #[inline]
    pub(crate) fn fp(&self, pc: u64) -> u8 {
        self.fps.get(self.place(pc)).copied().unwrap_or(0)
    }

    /// The second place for the entry of `place`.
    fn other(&self, place: usize) -> Option<usize> {
        (self.entries.len() > 1 << PACKED_BITS).then_some(place ^ (self.entries.len() / 2))
    }

    /// What is known of an address that [`Direct::get`] did not find, because another one took its place. Now it is
    /// the other one that is out of place.
    #[inline]
    pub(crate) fn recall(&mut self, pc: u64) -> Option<Packed> {
        let place = self.place(pc);
        let other = self.other(place)?;
        let bits = *self.entries.get(other)? ^ pc;
        if bits >= ABSENT {
            return None;
        }
        self.exchange(place, other);
        Some(Packed { bits, fp: self.fps.get(place).copied().unwrap_or(0) })
    }

    #[inline(never)]
    fn exchange(&mut self, place: usize, other: usize) {
        self.entries.swap(place, other);
        self.fps.swap(place, other);
        self.touch(place);
        self.touch(other);
    }

    /// Whether a rule can be remembered without moving another one.
    #[inline]
    pub(crate) fn has_place(&self, pc: u64) -> bool {
        let place = self.place(pc);
        !self.is_crowded() && self.entries.get(place).is_some_and(|&entry| is_empty(place, entry))
    }

    /// Remembers a rule. What was in its place is moved to the other one, and what was there is forgotten.
    #[inline]
    pub(crate) fn insert(&mut self, pc: u64, rule: Packed) {
        let place = self.place(pc);
        if self.entries.get(place).is_some_and(|&old| !is_empty(place, old) && old ^ pc > ABSENT) {
            self.push_out(place);
        }
        if let (Some(entry), Some(fp)) = (self.entries.get_mut(place), self.fps.get_mut(place)) {
            (*entry, *fp) = (pc ^ rule.bits, rule.fp);
            self.touch(place);
        }
    }

    #[inline(never)]
    fn push_out(&mut self, place: usize) {
        self.pushed_out = self.pushed_out.saturating_add(1);
        if let Some(other) = self.other(place) {
            self.entries.swap(place, other);
            self.fps.swap(place, other);
            self.touch(other);
        }
    }

    /// Something is written to `place`.
    #[inline]
    fn touch(&mut self, place: usize) {
        if self.touched.len() <= MANY {
            self.touched.push(place as u32);
        }
    }

    /// Whether rules begin to push out each other, and a larger table would help.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        let most = MAX_PUSHED_OUT[usize::from(self.entries.len() > FIRST_PLACES)];
        self.entries.len() < FIRST_PLACES || self.pushed_out >= most && self.entries.len() < 1 << LAST_BITS
    }

    /// A table four times as large with the same content; the first one if this has no entries.
    pub(crate) fn grow(&mut self) {
        let bits = if self.entries.is_empty() { PACKED_BITS } else { self.entries.len().ilog2() + 2 };
        let old = core::mem::replace(self, Direct::new(bits));
        for (place, (&entry, &fp)) in old.entries.iter().zip(&old.fps).enumerate() {
            if !is_empty(place, entry) {
                let pc = address(place, entry);
                self.insert(pc, Packed { bits: entry ^ pc, fp });
            }
        }
    }

    /// Forgets the addresses in `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        let length = range.end.saturating_sub(range.start);
        if length < self.entries.len() as u64 {
            for pc in range {
                let place = self.place(pc);
                self.remove_at(place, |found| found == pc);
                if let Some(other) = self.other(place) {
                    self.remove_at(other, |found| found == pc);
                }
            }
            return;
        }
        for place in 0..self.entries.len() {
            self.remove_at(place, |found| range.contains(&found));
        }
    }

    fn remove_at(&mut self, place: usize, matches: impl Fn(u64) -> bool) {
        if let Some(entry) = self.entries.get_mut(place)
            && !is_empty(place, *entry)
            && matches(address(place, *entry))
        {
            *entry = empty(place);
        }
    }

    /// Forgets everything, and grows from the first size again: what comes next may be small, and clearing it for
    /// each short-lived process would cost more than its walks.
    pub(crate) fn restart(&mut self) {
        self.entries.truncate(FIRST_PLACES);
        self.fps.truncate(FIRST_PLACES);
        self.entries.shrink_to_fit();
        self.fps.shrink_to_fit();
        self.clear();
    }

    /// Forgets everything, and keeps its size.
    pub(crate) fn clear(&mut self) {
        self.pushed_out = 0;
        if self.touched.len() > MANY {
            self.entries.fill(EMPTY);
            mark_first(&mut self.entries);
        } else {
            for &place in &self.touched {
                let place = place as usize;
                if let Some(entry) = self.entries.get_mut(place) {
                    *entry = empty(place);
                }
            }
        }
        self.touched.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_forgotten_is_not_found_again() {
        let rule = Packed { bits: 2, fp: 0 };
        for (bits, count) in [(PACKED_BITS, 5), (PACKED_BITS, 3000), (LAST_BITS, 5), (LAST_BITS, 70_000)] {
            let mut table = Direct::new(bits);
            // Many share a place, so that they push each other around, and are asked for out of place.
            let address = |number: u64| 0x5555_0000_0000 + (number % 7) * (1 << LAST_BITS) + number * 3;
            (0..count).for_each(|number| table.insert(address(number), rule));
            let known = (0..count).filter(|&number| table.recall(address(number)).is_some()).count();
            assert!(bits == PACKED_BITS || count < 100 || known > 0, "second places are used");
            table.restart();
            let fresh = Direct::new(PACKED_BITS);
            assert_eq!(table.entries, fresh.entries, "{count} in 2^{bits}");
        }
    }

    #[test]
    fn a_cleared_table_keeps_its_size() {
        let mut table = Direct::new(LAST_BITS);
        table.insert(0x1234_5678, Packed { bits: 2, fp: 0 });
        table.clear();
        assert_eq!(table.entries, Direct::new(LAST_BITS).entries);
    }
}
