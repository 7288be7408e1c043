//! Rules already found, by program counter, for one address space.
//!
//! Direct mapped, grows with the number of addresses seen. An entry is only believed if its whole key matches.

use core::ops::Range;

use crate::address::Avma;
use crate::cfi::Scratch;
use crate::row::{CfaRule, Expression, RegisterRule, Row};
use crate::rule::{Kind, Rule};

/// Entries of a new cache, as a power of two.
const FIRST_BITS: u32 = 9;
/// Entries of the largest cache: 64 Ki of 16 bytes. Compilers, the widest programs measured, use some 7,000 addresses.
const LAST_BITS: u32 = 16;
/// How many odd rows are kept. Real processes have a few dozen distinct ones.
const MAX_ODD: usize = 4096;
/// The most bytes that the expressions of one row may have. Real ones have a few dozen.
const MAX_TEXT: usize = 1024;

/// Rules by address. One for each address space; tell it when mappings change, new ones too: that there was nothing is
/// remembered as well.
#[derive(Debug)]
pub struct Cache {
    entries: Vec<Entry>,
    /// 64 minus the number of bits of an index: how far a hash is shifted to become one.
    shift: u32,
    /// Entries in use.
    used: usize,
    odd: Vec<OddRow>,
    /// Nothing may be allocated any more.
    is_fixed: bool,
    pub(crate) scratch: Scratch,
}

/// What is being looked up: an address, and whether it is a return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(u64);

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    rule: Rule,
}

/// A row that no compact rule can say, with its expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OddRow {
    pub(crate) row: Row,
    /// What the row's expressions are positions in.
    pub(crate) text: Box<[u8]>,
    pub(crate) bias: u64,
}

impl Key {
    const NONE: Key = Key(u64::MAX);

    /// User addresses leave the highest bit free.
    pub(crate) fn new(pc: Avma, is_return: bool) -> Key {
        Key(pc.0 << 1 | u64::from(is_return))
    }

    fn pc(self) -> Avma {
        Avma(self.0 >> 1)
    }

    /// Multiplying by 2^64 over the golden ratio spreads neighbours over the whole table.
    #[inline]
    fn index(self, shift: u32) -> usize {
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (shift & 63)) as usize
    }
}

impl Entry {
    const EMPTY: Entry = Entry { key: Key::NONE, rule: Rule::only(Kind::Missing) };
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            entries: Vec::new(),
            shift: 63,
            used: 0,
            odd: Vec::new(),
            is_fixed: false,
            scratch: Scratch::default(),
        }
    }
}

impl Cache {
    /// A cache of `1 << bits` entries that never allocates again: it drops entries instead of growing, and rows that no
    /// compact rule can say are decoded each time. For signal handlers. `bits` is brought into 9..=16.
    pub fn fixed(bits: u32) -> Cache {
        let bits = bits.clamp(FIRST_BITS, LAST_BITS);
        let (entries, scratch) = (vec![Entry::EMPTY; 1 << bits], Scratch::full());
        Cache { entries, shift: 64 - bits, is_fixed: true, scratch, ..Cache::default() }
    }

    /// Forgets what is known about `range`, because something else is mapped there now, or nothing.
    pub fn invalidate(&mut self, range: Range<Avma>) {
        for entry in &mut self.entries {
            if entry.key != Key::NONE && range.contains(&entry.key.pc()) {
                *entry = Entry::EMPTY;
                self.used -= 1;
            }
        }
    }

    /// Forgets everything (exec).
    pub fn clear(&mut self) {
        self.entries.fill(Entry::EMPTY);
        self.used = 0;
        self.odd.clear();
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<Rule> {
        let entry = self.entries.get(key.index(self.shift))?;
        (entry.key == key).then_some(entry.rule)
    }

    /// The odd row that a rule points at.
    pub(crate) fn odd(&self, rule: Rule) -> Option<&OddRow> {
        self.odd.get(usize::try_from(rule.value).ok()?)
    }

    pub(crate) fn insert(&mut self, key: Key, rule: Rule) {
        if !self.is_fixed && 2 * self.used >= self.entries.len() && self.shift > 64 - LAST_BITS {
            self.grow();
        }
        let index = key.index(self.shift);
        if let Some(entry) = self.entries.get_mut(index) {
            self.used += usize::from(entry.key == Key::NONE);
            *entry = Entry { key, rule };
        }
    }

    fn grow(&mut self) {
        let bits = if self.entries.is_empty() { FIRST_BITS } else { 64 - self.shift + 2 }.min(LAST_BITS);
        self.shift = 64 - bits;
        let old = core::mem::replace(&mut self.entries, vec![Entry::EMPTY; 1 << bits]);
        self.used = 0;
        for entry in old {
            if entry.key != Key::NONE
                && let Some(slot) = self.entries.get_mut(entry.key.index(self.shift))
            {
                self.used += usize::from(slot.key == Key::NONE);
                *slot = entry;
            }
        }
    }

    /// The rule for a row that is not compact. Rows that say the same are kept once.
    pub(crate) fn add_odd(&mut self, row: &Row, text: &[u8], bias: u64) -> Rule {
        if self.is_fixed {
            return Rule::only(Kind::Full);
        }
        let row = OddRow::new(row, text, bias);
        if row.text.len() > MAX_TEXT {
            return Rule::only(Kind::Bad);
        }
        let found = self.odd.iter().position(|other| *other == row);
        let index = found.unwrap_or_else(|| {
            if self.odd.len() >= MAX_ODD {
                self.clear();
            }
            self.odd.push(row);
            self.odd.len() - 1
        });
        u32::try_from(index).ok().and_then(Rule::odd).unwrap_or(Rule::only(Kind::Bad))
    }
}

impl OddRow {
    fn new(row: &Row, text: &[u8], bias: u64) -> OddRow {
        let mut row = row.clone();
        let mut kept = Vec::new();
        let mut keep = |expression: &mut Expression| {
            let bytes = expression.bytes(text);
            *expression = Expression { offset: kept.len(), length: bytes.len() };
            kept.extend_from_slice(bytes);
        };
        if let CfaRule::Expression(expression) = &mut row.cfa {
            keep(expression);
        }
        for rule in &mut row.registers {
            if let RegisterRule::Expression(expression) | RegisterRule::ValExpression(expression) = rule {
                keep(expression);
            }
        }
        // Where it holds does not matter any more; rows that say the same shall be equal.
        row.range = Default::default();
        OddRow { row, text: kept.into(), bias }
    }
}
