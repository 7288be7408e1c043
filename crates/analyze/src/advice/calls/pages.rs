//! Sets of pages and maps of address ranges, by process.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::MOST;

/// Size of a page in bytes.
pub(super) const PAGE: u64 = 4096;
/// Maximum number of remembered pages: 4 GiB.
const MOST_PAGES: usize = 1 << 20;

/// Set of pages seen so far.
#[derive(Default)]
pub(super) struct Pages(FxHashSet<(u32, u64)>);

impl Pages {
    /// Adds the page of an address. Returns whether it was there before; `false` for a new page when the set is full.
    pub fn again(&mut self, pid: u32, address: u64) -> bool {
        let page = (pid, address / PAGE);
        if self.0.len() >= MOST_PAGES {
            return self.0.contains(&page);
        }
        !self.0.insert(page)
    }
}

/// Address ranges of processes, each with a value. If two begin at the same address, the later one replaces the
/// earlier.
pub(super) struct Ranges<T>(FxHashMap<u32, BTreeMap<u64, Range<T>>>);

/// An address range.
pub(super) struct Range<T> {
    /// Length in bytes.
    pub length: u64,
    /// Value of the range.
    pub known: T,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> Ranges<T> {
    /// Returns whether there is room for ranges of a process: the number of processes is limited.
    pub fn has_room_for(&self, pid: u32) -> bool {
        self.0.len() < MOST || self.0.contains_key(&pid)
    }

    /// Returns the ranges of a process, by start address.
    pub fn of(&mut self, pid: u32) -> &mut BTreeMap<u64, Range<T>> {
        self.0.entry(pid).or_default()
    }

    /// Returns the value of the range that holds an address. Only the last range that begins at or before it is
    /// considered.
    pub fn at(&mut self, pid: u32, address: u64) -> Option<&mut T> {
        let (&start, range) = self.0.get_mut(&pid)?.range_mut(..=address).next_back()?;
        (address - start < range.length).then_some(&mut range.known)
    }

    /// Returns all ranges.
    pub fn all(&self) -> impl Iterator<Item = &Range<T>> {
        self.0.values().flat_map(BTreeMap::values)
    }
}
