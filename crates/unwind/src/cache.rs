//! Cache of rules by program counter, for one address space.
//!
//! Two direct-mapped tables (`direct`) grow with the number of addresses seen. One is for return addresses, which
//! recur in nearly every stack. The other is for sampled program counters, which keep appearing throughout a long
//! recording. A rule that needs more than a few bits is stored once in a list, and the tables point at it.

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

/// Maximum number of odd rows. Real processes have a few dozen distinct ones.
const MAX_ODD: usize = 4096;
/// Maximum total size in bytes of the expressions of one row. Real rows have a few dozen bytes.
const MAX_TEXT: usize = 1024;
/// Base-2 logarithm of the block size, in bytes, by which the cache tracks which addresses it may know.
const BLOCK_BITS: u32 = 20;
/// Number of bits for those blocks. Block numbers wrap, so blocks share bits.
const BLOCKS: usize = 1024;
/// Maximum number of remembered addresses without rules.
const MAX_FLOORS: usize = 1 << 14;
/// Size of the hash table from a rule to its position in the list.
const RECENT: usize = 256;

/// Base-2 logarithm of the number of remembered return addresses with no special code behind them.
const ORDINARY_BITS: u32 = 12;

/// Rules by address, for one address space. Call [`Cache::invalidate`] whenever mappings change, new ones included:
/// the absence of a mapping is remembered as well.
///
/// A new cache uses no memory. It allocates 37 KB for each of its two tables with the first address, and grows to 590
/// KB each once a process uses enough addresses.
#[derive(Debug)]
pub struct Cache {
    /// Rules by return address.
    callers: Direct,
    /// Rules by any other program counter.
    leaves: Direct,
    /// Rules that entries of the tables point at.
    list: Vec<Rule>,
    /// Possible position of a rule in `list`, by hash of the rule.
    recent: Box<[u16]>,
    odd: Vec<OddRow>,
    /// Blocks of addresses about which something may be known. A change in any other block costs nothing.
    blocks: [u64; BLOCKS / 64],
    /// Whether allocation is forbidden.
    is_fixed: bool,
    pub(crate) scratch: Scratch,
    pub(crate) heads: Heads,
    /// Earliest possible start of the function that holds an address without rules (`scan`).
    floors: BTreeMap<u64, u64>,
    /// Return addresses followed by neither a start routine nor a stub, each in the slot of its hash; 0: empty slot.
    /// The table is allocated with the first address: most programs have rules for all their code.
    ordinary: Box<[u64]>,
    /// Other addresses whose instructions agree with their rules, as `ordinary` has return addresses.
    agreed: Box<[u64]>,
    /// Buffers for walks outside signal handlers.
    pub(crate) trail: ReturnSlots,
}

/// Returns the slot of an address in `ordinary`. Uses Fibonacci hashing, because return addresses in compiled code
/// are at all distances.
fn ordinary_place(pc: Avma) -> usize {
    (pc.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ORDINARY_BITS)) as usize
}

/// Lookup key: an address, and whether it is a return address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) pc: Avma,
    pub(crate) is_return: bool,
}

/// A row that no compact rule can express, with its expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OddRow {
    pub(crate) row: Row,
    /// Text that the row's expressions index into.
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
            agreed: Box::default(),
            trail: ReturnSlots::default(),
        }
    }
}

impl Cache {
    /// Returns a cache that never allocates again, for signal handlers. It drops entries instead of growing, and it
    /// decodes rows that no compact rule can express each time. It has room for `1 << bits` return addresses and as
    /// many other addresses; `bits` is clamped to 12..=16.
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

    /// Returns whether allocation is forbidden.
    #[inline]
    pub(crate) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Forgets everything about `range`, because its mapping changed or went away.
    ///
    /// Costs next to nothing if nothing is known about that part of the address space, and otherwise at most one look
    /// at every entry. Rules outside the range stay.
    pub fn invalidate(&mut self, range: Range<Avma>) {
        if range.is_empty() || !self.may_know(&range) {
            return;
        }
        self.leaves.remove(range.start.0..range.end.0);
        self.floors.clear();
        self.ordinary.fill(0);
        self.agreed.fill(0);
        // A return address depends on the call before it.
        self.callers.remove(range.start.0.saturating_add(1)..range.end.0.saturating_add(1));
    }

    /// Forgets everything, for example after an exec.
    pub fn clear(&mut self) {
        for table in [&mut self.callers, &mut self.leaves] {
            if self.is_fixed { table.clear() } else { table.restart() }
        }
        self.list.clear();
        self.odd.clear();
        self.floors.clear();
        self.ordinary.fill(0);
        self.agreed.fill(0);
        self.blocks = [0; BLOCKS / 64];
    }

    /// Returns whether [`Cache::note_ordinary`] was called for a return address.
    pub(crate) fn is_ordinary(&self, pc: Avma) -> bool {
        self.ordinary.get(ordinary_place(pc)) == Some(&pc.0)
    }

    /// Records that no code of a known special form follows a return address.
    pub(crate) fn note_ordinary(&mut self, pc: Avma) {
        if self.ordinary.is_empty() && !self.is_fixed {
            self.ordinary = alloc::vec![0; 1 << ORDINARY_BITS].into();
        }
        if let Some(place) = self.ordinary.get_mut(ordinary_place(pc)) {
            *place = pc.0;
        }
    }

    /// Returns whether [`Cache::note_agreed`] was called for an address.
    #[inline]
    pub(crate) fn is_agreed(&self, pc: Avma) -> bool {
        self.agreed.get(ordinary_place(pc)) == Some(&pc.0)
    }

    /// Records that the instructions from an address on do not contradict its rule, whatever the registers are.
    pub(crate) fn note_agreed(&mut self, pc: Avma) {
        if self.agreed.is_empty() && !self.is_fixed {
            self.agreed = alloc::vec![0; 1 << ORDINARY_BITS].into();
        }
        if let Some(place) = self.agreed.get_mut(ordinary_place(pc)) {
            *place = pc.0;
        }
    }

    /// Returns the earliest possible start of the function that holds an address without rules, if that was searched
    /// for.
    pub(crate) fn floor(&self, at: Avma) -> Option<Avma> {
        self.floors.get(&at.0).copied().map(Avma)
    }

    /// Records the result of that search.
    pub(crate) fn keep_floor(&mut self, at: Avma, floor: Avma) {
        if self.is_fixed {
            return;
        }
        if self.floors.len() >= MAX_FLOORS {
            self.floors.clear();
        }
        self.floors.insert(at.0, floor.0);
    }

    /// Looks up an address in its first place only.
    #[inline]
    pub(crate) fn packed(&self, key: Key) -> Option<Packed> {
        let table = if key.is_return { &self.callers } else { &self.leaves };
        table.get(key.pc.0)
    }

    /// Returns the rules that packed rules from [`OFFSETS`] on point at.
    pub(crate) fn list(&self) -> &[Rule] {
        &self.list
    }

    /// Returns the listed rule that a packed rule points at.
    pub(crate) fn listed(&self, bits: u64) -> Option<Rule> {
        self.list.get(usize::try_from(bits.checked_sub(OFFSETS)?).ok()?).copied()
    }

    /// Looks up an address that [`Cache::packed`] did not find, in its second place, and moves it to the first.
    #[inline]
    pub(crate) fn recall(&mut self, key: Key) -> Option<Packed> {
        let table = if key.is_return { &mut self.callers } else { &mut self.leaves };
        table.recall(key.pc.0)
    }

    /// Returns the rule that a packed rule represents.
    #[inline]
    pub(crate) fn unpack(&self, packed: Packed) -> Option<Rule> {
        packed.rule(&self.list)
    }

    /// Returns the table of return addresses.
    #[inline]
    pub(crate) fn callers(&self) -> &Direct {
        &self.callers
    }

    /// Returns the table of other addresses.
    #[inline]
    pub(crate) fn leaves(&self) -> &Direct {
        &self.leaves
    }

    /// Returns the odd row that a rule points at.
    pub(crate) fn odd(&self, rule: Rule) -> Option<&OddRow> {
        self.odd.get(usize::try_from(rule.value).ok()?)
    }

    /// Returns whether a rule can be inserted without moving or evicting another.
    #[inline]
    pub(crate) fn has_place(&self, key: Key) -> bool {
        let table = if key.is_return { &self.callers } else { &self.leaves };
        self.list.len() < direct::MAX_LISTED && self.odd.len() < MAX_ODD && table.has_place(key.pc.0)
    }

    /// Inserts a rule. Returns `None` if the list of rules is full.
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

    /// Adds a rule to the list, unless it is there already. Returns `None` if the list is full and the cache is
    /// fixed.
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
                // The largest process seen had less than a tenth as many rules.
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

    /// Returns whether anything may be known about the range.
    fn may_know(&self, range: &Range<Avma>) -> bool {
        // A return address may be the first address after the range.
        let (first, last) = (range.start.0 >> BLOCK_BITS, range.end.0 >> BLOCK_BITS);
        if last - first >= BLOCKS as u64 {
            return true;
        }
        (first..=last).any(|number| {
            let (word, bit) = block(number);
            self.blocks.get(word).is_some_and(|word| word & bit != 0)
        })
    }

    /// Returns the rule that points at a row with no compact form. Equal rows are stored once.
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

/// Returns the word index and the mask of a block's bit.
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
        // The range no longer matters; clear it so that equal rows compare equal.
        row.range = Default::default();
        OddRow { row, text: kept.into(), bias }
    }
}
