//! Direct-mapped table of packed rules by program counter: eight bytes per entry, and one more for the frame pointer.
//!
//! An entry is the address XORed with its packed rule of [`PACKED_BITS`] bits. The index of an entry covers at least
//! that many low bits of the address. XORing the entry with an address therefore yields the rule if all address bits
//! match, and otherwise a number larger than any rule. So one comparison shows whether the entry matches and whether
//! its rule is of the usual kind.
//!
//! An entry that is displaced moves to a second place, whose index differs in the highest bit, so a pair of colliding
//! addresses keeps both entries. The smallest table has no second places: the comparison above needs all bits of its
//! index.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::rule::{Kind, Rule};

/// Bits of a packed rule. No table has fewer entries than there are packed rules.
pub(crate) const PACKED_BITS: u32 = 12;
/// Packed rules below this are offsets; from here on they are positions in a list of rules, counted from here.
pub(crate) const OFFSETS: u64 = 1 << 11;
/// Packed value for "no rule". Anything larger belongs to another address.
pub(crate) const ABSENT: u64 = (1 << PACKED_BITS) - 1;
/// Packed rule of an outermost frame.
pub(crate) const ROOT: u64 = ABSENT - 1;
/// Packed rule of code with a frame pointer: the CFA is two words above the address in the frame pointer, where the
/// caller's frame pointer is saved.
pub(crate) const FRAMED: u64 = ABSENT - 2;
/// Maximum number of rules in the list.
pub(crate) const MAX_LISTED: usize = (FRAMED - OFFSETS) as usize;
/// The rule that [`FRAMED`] represents.
const FRAMED_RULE: Rule = Rule { kind: Kind::Fp, ra: -1, fp: -2, value: 16 };
/// Base-2 logarithm of the entries of the largest table. Compilers, the largest programs measured, return to some
/// 10,000 addresses.
pub(crate) const LAST_BITS: u32 = 16;

/// A direct-mapped table. It has no entries, or a power of two of at least `1 << PACKED_BITS`.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    entries: Vec<u64>,
    /// For each entry, how many words below the CFA the frame pointer is saved; 0 if it is unchanged. Only meaningful
    /// if the packed rule is an offset.
    fps: Vec<u8>,
    /// Number of displaced entries since the table grew.
    pushed_out: u32,
    /// Places written since the table was cleared. More than [`MANY`] means any place.
    touched: Vec<u32>,
}

/// Number of displaced entries after which a table grows. Lower for the smallest table, because it has no second
/// places.
const MAX_PUSHED_OUT: [u32; 2] = [16, 64];

/// A rule in its packed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) bits: u64,
    pub(crate) fp: u8,
}

impl Packed {
    /// Packs a rule that needs no list: a CFA at an offset in words from the stack pointer with the return address just
    /// below the CFA, or one of two frequent special rules. Returns `None` for all others, and if a number is too large.
    #[inline]
    pub(crate) fn usual(rule: Rule) -> Option<Packed> {
        if rule.kind != Kind::Sp {
            return match rule.kind {
                Kind::Fp if rule == FRAMED_RULE => Some(Packed { bits: FRAMED, fp: 2 }),
                Kind::Root if rule == Rule::only(Kind::Root) => Some(Packed { bits: ROOT, fp: 0 }),
                _ => None,
            };
        }
        // The number of words; a remainder or a sign rotates to the top and makes the number too large.
        let bits = u64::from((rule.value as u32).rotate_right(3));
        let fp = u8::try_from(-i32::from(rule.fp)).ok()?;
        (rule.ra == -1 && (1..OFFSETS).contains(&bits)).then_some(Packed { bits, fp })
    }

    /// Packs a reference to the rule at `position` in the list.
    pub(crate) fn listed(position: usize) -> Option<Packed> {
        (position < MAX_LISTED).then_some(Packed { bits: OFFSETS + position as u64, fp: 0 })
    }

    /// Unpacks the rule. Everything but offsets and the special rules is looked up in the list.
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

/// Maximum number of written places that are recorded, so that the few entries of a short-lived process are cleared
/// one by one.
const MANY: usize = 100;

/// Number of places that addresses below `1 << PACKED_BITS` can have.
const FIRST_PLACES: usize = 1 << PACKED_BITS;

/// Value of an empty place: XORed with any address it yields no rule. The first places need another value, one that
/// matches none of the addresses that map to them.
const EMPTY: u64 = 1;

fn empty(place: usize) -> u64 {
    if place < FIRST_PLACES { !(place as u64) } else { EMPTY }
}

/// Returns whether a place has no rule.
fn is_empty(place: usize, entry: u64) -> bool {
    entry == empty(place)
}

/// Marks the first places as empty.
fn mark_first(entries: &mut [u64]) {
    entries.iter_mut().take(FIRST_PLACES).enumerate().for_each(|(place, entry)| *entry = empty(place));
}

/// Returns the address of the entry at `place`.
fn address(place: usize, entry: u64) -> u64 {
    entry & !ABSENT | place as u64 & ABSENT
}

impl Direct {
    /// Creates a table with `1 << bits` entries.
    pub(crate) fn new(bits: u32) -> Direct {
        let count = 1 << bits.clamp(PACKED_BITS, LAST_BITS);
        let mut entries = vec![EMPTY; count];
        mark_first(&mut entries);
        Direct { entries, fps: vec![0; count], pushed_out: 0, touched: Vec::with_capacity(MANY + 1) }
    }

    /// Returns the raw entries.
    #[inline]
    pub(crate) fn entries(&self) -> &[u64] {
        &self.entries
    }

    fn place(&self, pc: u64) -> usize {
        pc as usize & self.entries.len().wrapping_sub(1)
    }

    /// Returns the packed rule of an address, or a number larger than any packed rule.
    #[inline]
    pub(crate) fn bits(&self, pc: u64) -> u64 {
        self.entries.get(self.place(pc)).map_or(u64::MAX, |entry| entry ^ pc)
    }

    /// Looks up an address in its first place.
    #[inline]
    pub(crate) fn get(&self, pc: u64) -> Option<Packed> {
        let place = self.place(pc);
        let bits = self.entries.get(place)? ^ pc;
        (bits < ABSENT).then(|| Packed { bits, fp: self.fps.get(place).copied().unwrap_or(0) })
    }

    /// Returns how many words below the CFA the caller's frame pointer is saved, or 0 if it is unchanged. Only
    /// meaningful if the address is in its first place and its rule is an offset.
    #[inline]
    pub(crate) fn fp(&self, pc: u64) -> u8 {
        self.fps.get(self.place(pc)).copied().unwrap_or(0)
    }

    /// Returns the second place for the entry of `place`.
    fn other(&self, place: usize) -> Option<usize> {
        (self.entries.len() > 1 << PACKED_BITS).then_some(place ^ (self.entries.len() / 2))
    }

    /// Looks up an address that [`Direct::get`] did not find because its entry was displaced. Swaps the two entries,
    /// so the other one is now in its second place.
    #[inline]
    pub(crate) fn recall(&mut self, pc: u64) -> Option<Packed> {
        let place = self.place(pc);
        let other = self.other(place)?;
        let entry = *self.entries.get(other)?;
        let bits = entry ^ pc;
        // An empty second place yields a number like a rule for the lowest addresses, to which no code is ever mapped.
        if bits >= ABSENT || is_empty(other, entry) {
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

    /// Returns whether a rule can be inserted without moving another.
    #[inline]
    pub(crate) fn has_place(&self, pc: u64) -> bool {
        let place = self.place(pc);
        !self.is_crowded() && self.entries.get(place).is_some_and(|&entry| is_empty(place, entry))
    }

    /// Inserts a rule. The previous entry moves to its second place, and the entry there is evicted.
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

    /// Records a write to `place`.
    #[inline]
    fn touch(&mut self, place: usize) {
        if self.touched.len() <= MANY {
            self.touched.push(place as u32);
        }
    }

    /// Returns whether rules displace each other often enough for a larger table.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        let most = MAX_PUSHED_OUT[usize::from(self.entries.len() > FIRST_PLACES)];
        self.entries.len() < FIRST_PLACES || self.pushed_out >= most && self.entries.len() < 1 << LAST_BITS
    }

    /// Grows the table fourfold and keeps its content. A table without entries gets the first size.
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

    /// Forgets everything and shrinks to the first size: the next process may be small, and clearing a large table
    /// for each short-lived process would cost more than its walks.
    pub(crate) fn restart(&mut self) {
        self.entries.truncate(FIRST_PLACES);
        self.fps.truncate(FIRST_PLACES);
        self.entries.shrink_to_fit();
        self.fps.shrink_to_fit();
        self.clear();
    }

    /// Forgets everything and keeps the size.
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
            // Many addresses collide, so they displace each other and are looked up in their second places.
            let address = |number: u64| 0x5555_0000_0000 + (number % 7) * (1 << LAST_BITS) + number * 3;
            (0..count).for_each(|number| table.insert(address(number), rule));
            let known = (0..count).filter(|&number| table.recall(address(number)).is_some()).count();
            assert!(bits == PACKED_BITS || count < 100 || known > 0, "second places are used");
            table.restart();
            let fresh = Direct::new(PACKED_BITS);
            assert_eq!(table.entries, fresh.entries, "{count} in 2^{bits}");
        }
    }

    /// A walk that is led to such an address would stay there.
    #[test]
    fn the_lowest_addresses_have_no_rules() {
        let mut table = Direct::new(LAST_BITS);
        for pc in 0..1 << PACKED_BITS {
            assert_eq!((table.get(pc), table.recall(pc)), (None, None), "{pc:#x}");
            assert!(table.bits(pc) > ABSENT, "{pc:#x}");
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
