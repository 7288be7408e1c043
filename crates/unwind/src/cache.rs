//! Rules already found, by program counter, for one address space.
//!
//! Two direct-mapped tables (`direct`), which grow with the number of addresses seen: one for return addresses, which
//! come back in nearly every stack, and one for the places that were sampled, of which there is no end in a long
//! recording. A rule that is more than a few bits is listed once, and the tables point at it.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use crate::address::Avma;
use crate::cfi::Scratch;
use crate::fast::ReturnSlots;
use crate::row::{CfaRule, Expression, RegisterRule, Row};
use crate::rule::{Kind, Rule};
use crate::table::Heads;

mod direct;

pub(crate) use direct::{Direct, FRAMED, LAST_BITS, OFFSETS, PACKED_BITS, Packed, ROOT};

/// How many odd rows are kept. Real processes have a few dozen distinct ones.
const MAX_ODD: usize = 4096;
/// The most bytes that the expressions of one row may have. Real ones have a few dozen.
const MAX_TEXT: usize = 1024;
/// What is remembered about where addresses are: blocks of this many bytes, as a power of two ...
const BLOCK_BITS: u32 = 20;
/// ... in so many bits, again and again.
const BLOCKS: usize = 1024;
/// So many addresses without rules are remembered.
const MAX_FLOORS: usize = 1 << 14;
/// How many positions in the list of rules are remembered by what the rule is.
const RECENT: usize = 256;

/// So many return addresses are remembered behind which there is nothing special, as a power of two.
const ORDINARY_BITS: u32 = 12;

/// Rules by address. One for each address space; tell it when mappings change, new ones too: that there was nothing is
/// remembered as well.
///
/// A cache begins without memory, takes 37 KB for each of two tables with the first address, and 590 KB for each once
/// a process uses so many addresses.
#[derive(Debug)]
pub struct Cache {
    /// By return address.
    callers: Direct,
    /// By any other program counter.
    leaves: Direct,
    /// Rules that the tables point at.
    list: Vec<Rule>,
    /// By hash of a rule, where it may be in the list.
    recent: Box<[u16]>,
    odd: Vec<OddRow>,
    /// Which blocks of addresses something may be known about: a change elsewhere costs nothing.
    blocks: [u64; BLOCKS / 64],
    /// Nothing may be allocated any more.
    is_fixed: bool,
    pub(crate) scratch: Scratch,
    pub(crate) heads: Heads,
    /// Of code without rules, by address, where its function begins at the earliest (`scan`).
    floors: BTreeMap<u64, u64>,
    /// Return addresses behind which there is neither a start routine nor a stub, each in the place of its hash; 0: none. Empty until the
    /// first: most programs have rules for all their code.
    ordinary: Box<[u64]>,
    /// What walks that are not in signal handlers work in.
    pub(crate) trail: ReturnSlots,
}

/// Where an address is in the list of those behind which there is nothing special: by Fibonacci hashing, as return addresses of code that
/// a compiler made are at all distances.
fn ordinary_place(pc: Avma) -> usize {
    (pc.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ORDINARY_BITS)) as usize
}

/// What is being looked up: an address, and whether it is a return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) pc: Avma,
    pub(crate) is_return: bool,
}

/// A row that no compact rule can say, with its expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OddRow {
    pub(crate) row: Row,
    /// What the row's expressions are positions in.
    pub(crate) text: Box<[u8]>,
    pub(crate) bias: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            callers: Direct::default(),
            leaves: Direct::default(),
            list: Vec::new(),
            recent: Box::default(),
            odd: Vec::new(),
            blocks: [0; BLOCKS / 64],
            is_fixed: false,
            scratch: Scratch::default(),
            heads: Heads::default(),
            floors: BTreeMap::new(),
            ordinary: Box::default(),
            trail: ReturnSlots::default(),
        }
    }
}

impl Cache {
    /// A cache that never allocates again: it drops entries instead of growing, and rows that no compact rule can say
    /// are decoded each time. For signal handlers. There is room for `1 << bits` return addresses and as many other
    /// addresses; `bits` is brought into 12..=16.
    pub fn fixed(bits: u32) -> Cache {
        Cache {
            callers: Direct::new(bits),
            leaves: Direct::new(bits),
            list: Vec::with_capacity(direct::MAX_LISTED),
            recent: [0; RECENT].into(),
            is_fixed: true,
            scratch: Scratch::full(),
            ..Cache::default()
        }
    }

    /// Whether nothing may be allocated.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Forgets what is known about `range`, because something else is mapped there now, or nothing.
    ///
    /// Costs next to nothing where nothing is known of that part of the address space, else at most one look at every
    /// entry; all else stays known.
    pub fn invalidate(&mut self, range: Range<Avma>) {
        if range.is_empty() || !self.may_know(&range) {
            return;
        }
        self.leaves.remove(range.start.0..range.end.0);
        self.floors.clear();
        self.ordinary.fill(0);
        // What counts is where the call is.
        self.callers.remove(range.start.0.saturating_add(1)..range.end.0.saturating_add(1));
    }

    /// Forgets everything (exec).
    pub fn clear(&mut self) {
        for table in [&mut self.callers, &mut self.leaves] {
            if self.is_fixed { table.clear() } else { table.restart() }
        }
        self.list.clear();
        self.odd.clear();
        self.floors.clear();
        self.ordinary.fill(0);
        self.blocks = [0; BLOCKS / 64];
    }

    /// Whether it was noted that there is no code of a known form behind a return address.
    pub(crate) fn is_ordinary(&self, pc: Avma) -> bool {
        self.ordinary.get(ordinary_place(pc)) == Some(&pc.0)
    }

    /// Notes that.
    pub(crate) fn note_ordinary(&mut self, pc: Avma) {
        if self.ordinary.is_empty() && !self.is_fixed {
            self.ordinary = alloc::vec![0; 1 << ORDINARY_BITS].into();
        }
        if let Some(place) = self.ordinary.get_mut(ordinary_place(pc)) {
            *place = pc.0;
        }
    }

    /// Where the function of an address without rules begins at the earliest, if that was looked for.
    pub(crate) fn floor(&self, at: Avma) -> Option<Avma> {
        self.floors.get(&at.0).copied().map(Avma)
    }

    /// Remembers that.
    pub(crate) fn keep_floor(&mut self, at: Avma, floor: Avma) {
        if self.is_fixed {
            return;
        }
        if self.floors.len() >= MAX_FLOORS {
            self.floors.clear();
        }
        self.floors.insert(at.0, floor.0);
    }

    /// What is known of an address, if that is in its place.
    #[inline]
    pub(crate) fn packed(&self, key: Key) -> Option<Packed> {
        let table = if key.is_return { &self.callers } else { &self.leaves };
        table.get(key.pc.0)
    }

    /// The rule that a packed one points at.
    pub(crate) fn listed(&self, bits: u64) -> Option<Rule> {
        self.list.get(usize::try_from(bits.checked_sub(OFFSETS)?).ok()?).copied()
    }

    /// What [`Cache::packed`] did not find because it was out of place.
    #[inline]
    pub(crate) fn recall(&mut self, key: Key) -> Option<Packed> {
        let table = if key.is_return { &mut self.callers } else { &mut self.leaves };
        table.recall(key.pc.0)
    }

    /// The rule that a packed one stands for.
    #[inline]
    pub(crate) fn unpack(&self, packed: Packed) -> Option<Rule> {
        packed.rule(&self.list)
    }

    /// The table of return addresses.
    #[inline]
    pub(crate) fn callers(&self) -> &Direct {
        &self.callers
    }

    /// The table of other addresses.
    #[inline]
    pub(crate) fn leaves(&self) -> &Direct {
        &self.leaves
    }

    /// The odd row that a rule points at.
    pub(crate) fn odd(&self, rule: Rule) -> Option<&OddRow> {
        self.odd.get(usize::try_from(rule.value).ok()?)
    }

    /// Whether a rule can be remembered without another one being moved or forgotten.
    #[inline]
    pub(crate) fn has_place(&self, key: Key) -> bool {
        let table = if key.is_return { &self.callers } else { &self.leaves };
        self.list.len() < direct::MAX_LISTED && self.odd.len() < MAX_ODD && table.has_place(key.pc.0)
    }

    /// Remembers a rule. `None` if there is no room for it.
    #[inline]
    pub(crate) fn insert(&mut self, key: Key, rule: Rule) -> Option<Packed> {
        let packed = match Packed::usual(rule) {
            Some(packed) => packed,
            None => self.enlist(rule)?,
        };
        let table = if key.is_return { &mut self.callers } else { &mut self.leaves };
        if table.is_crowded() && !self.is_fixed {
            table.grow();
        }
        table.insert(key.pc.0, packed);
        let (word, bit) = block(key.pc.0 >> BLOCK_BITS);
        if let Some(word) = self.blocks.get_mut(word) {
            *word |= bit;
        }
        Some(packed)
    }

    /// Puts a rule on the list, unless it is there already. `None` if the list is full for good.
    #[inline(never)]
    fn enlist(&mut self, rule: Rule) -> Option<Packed> {
        if self.recent.is_empty() {
            self.recent = [0; RECENT].into();
        }
        let recent = self.recent.get_mut(hash(rule))?;
        if self.list.get(usize::from(*recent)) == Some(&rule) {
            return Packed::listed(usize::from(*recent));
        }
        let found = self.list.iter().position(|other| *other == rule);
        let position = found.unwrap_or(self.list.len());
        let packed = match Packed::listed(position) {
            Some(packed) => packed,
            None if self.is_fixed => return None,
            None => {
                // No process was seen that has a tenth as many.
                let odd = core::mem::take(&mut self.odd);
                self.clear();
                self.odd = odd;
                return self.enlist(rule);
            }
        };
        *recent = u16::try_from(position).ok()?;
        if found.is_none() {
            self.list.push(rule);
        }
        Some(packed)
    }

    /// Whether anything may be known about the range.
    fn may_know(&self, range: &Range<Avma>) -> bool {
        // Return addresses may be just behind it.
        let (first, last) = (range.start.0 >> BLOCK_BITS, range.end.0 >> BLOCK_BITS);
        if last - first >= BLOCKS as u64 {
            return true;
        }
        (first..=last).any(|number| {
            let (word, bit) = block(number);
            self.blocks.get(word).is_some_and(|word| word & bit != 0)
        })
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

/// Where the bit of a block is.
fn block(number: u64) -> (usize, u64) {
    let number = number as usize % BLOCKS;
    (number / 64, 1 << (number % 64))
}

fn hash(rule: Rule) -> usize {
    let number = rule.value as u32 ^ (rule.kind as u32) << 29 ^ u32::from(rule.fp as u16) << 13;
    (number.wrapping_mul(0x9e37_79b9) >> 24) as usize % RECENT
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
