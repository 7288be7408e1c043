//! Collects the rows of a table: each with its start, equal neighbours merged, each rule stored once.

use alloc::vec;
use alloc::vec::Vec;

use super::{PAGE_BITS, TableError};

/// Maximum number of pages: code of 4 GiB. A table has an entry for each page, even for pages without code.
pub(super) const MAX_PAGES: usize = 1 << 16;
/// Maximum number of rules. The number after the last means "none".
pub(super) const MAX_RULES: usize = u16::MAX as usize;

/// A table under construction. Rows are added in address order.
#[derive(Debug)]
pub(super) struct Collected {
    /// First address of the first page.
    pub(super) base: u64,
    /// For each page, the number of rows before it.
    pub(super) pages: Vec<u32>,
    /// Address within the page, and number of the rule.
    pub(super) rows: Vec<u32>,
    pub(super) rules: Rules,
    last: u64,
    error: Option<TableError>,
}

/// Size of the cache of recent rules, a power of two.
const RECENT: usize = 1024;
/// Value that no rule has.
const NO_RULE: u64 = u64::MAX;

impl Default for Collected {
    fn default() -> Self {
        let (pages, rows, rules) = (Vec::new(), Vec::new(), Rules::default());
        Collected { base: 0, pages, rows, rules, last: NO_RULE, error: None }
    }
}

impl Collected {
    /// Returns whether the last row has this rule.
    #[inline(always)]
    pub(super) fn says(&self, rule: u64) -> bool {
        self.last == rule
    }

    /// Adds a row from `start` on, unless the last row has the same rule.
    #[inline(always)]
    pub(super) fn push(&mut self, start: u64, rule: u64) {
        if !self.says(rule) {
            self.push_other(start, rule);
        }
    }

    /// Adds a row whose rule differs from the last row's.
    #[inline(never)]
    fn push_other(&mut self, start: u64, rule: u64) {
        self.last = rule;
        let Some(index) = self.rules.index(rule) else {
            self.error = Some(TableError::TooManyRules);
            return;
        };
        if self.rows.is_empty() {
            self.base = start >> PAGE_BITS << PAGE_BITS;
        }
        let offset = start.wrapping_sub(self.base);
        let page = usize::try_from(offset >> PAGE_BITS).unwrap_or(usize::MAX);
        if page >= self.pages.len() && !self.begin_page(page) {
            return;
        }
        self.rows.push((offset as u32) << PAGE_BITS | u32::from(index));
    }

    #[inline(never)]
    fn begin_page(&mut self, page: usize) -> bool {
        // Rows are at least a byte long, so their number fits for any allowed number of pages.
        let rows = u32::try_from(self.rows.len()).ok();
        match rows.filter(|_| page < MAX_PAGES && self.error.is_none()) {
            Some(rows) => self.pages.resize(page + 1, rows),
            None => self.error = self.error.or(Some(TableError::TooWide)),
        }
        self.error.is_none()
    }

    /// Returns the first error, if any.
    pub(super) fn check(&self) -> Result<(), TableError> {
        self.error.map_or(Ok(()), Err)
    }
}

/// Bidirectional map between rules and numbers. A rule is represented by its eight bytes, as a number.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) list: Vec<u64>,
    /// Recently used rules with their numbers.
    recent: [(u64, u16); RECENT],
    /// Hash table of numbers, with open addressing; its length is a power of two, and at most half of it is full.
    slots: Vec<u16>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { list: Vec::new(), recent: [(NO_RULE, 0); RECENT], slots: Vec::new() }
    }
}

impl Rules {
    const NONE: u16 = MAX_RULES as u16;

    #[inline]
    fn index(&mut self, rule: u64) -> Option<u16> {
        let recent = hash(rule) % RECENT;
        match self.recent.get(recent) {
            Some(&(known, index)) if known == rule => Some(index),
            _ => {
                let index = self.search(rule)?;
                if let Some(slot) = self.recent.get_mut(recent) {
                    *slot = (rule, index);
                }
                Some(index)
            }
        }
    }

    #[inline(never)]
    fn search(&mut self, rule: u64) -> Option<u16> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = hash(rule) & mask;
        while let Some(&index) = self.slots.get(slot) {
            match self.list.get(usize::from(index)) {
                Some(found) if *found == rule => return Some(index),
                Some(_) => slot = (slot + 1) & mask,
                None => break,
            }
        }
        self.add(rule)
    }

    #[inline(never)]
    fn add(&mut self, rule: u64) -> Option<u16> {
        let index = u16::try_from(self.list.len()).ok().filter(|&index| index != Self::NONE)?;
        self.list.push(rule);
        if 2 * self.list.len() > self.slots.len() {
            self.slots = vec![Self::NONE; (4 * self.list.len()).next_power_of_two()];
            for (index, rule) in (0..=index).zip(&self.list) {
                place(&mut self.slots, *rule, index);
            }
        } else {
            place(&mut self.slots, rule, index);
        }
        Some(index)
    }
}

fn place(slots: &mut [u16], rule: u64, index: u16) {
    let mask = slots.len().wrapping_sub(1);
    let mut slot = hash(rule) & mask;
    while let Some(taken) = slots.get_mut(slot) {
        if *taken == Rules::NONE {
            *taken = index;
            return;
        }
        slot = (slot + 1) & mask;
    }
}

/// Hashes a rule. Multiplying spreads the differing bits, mostly a few low bits of the value, over the high half.
#[inline]
fn hash(rule: u64) -> usize {
    (rule.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}
