//! Pages of processes, and ranges of addresses.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::MOST;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// Pages that are remembered: 4 GiB of them.
const MOST_PAGES: usize = 1 << 20;

/// Pages that were seen.
#[derive(Default)]
pub(super) struct Pages(FxHashSet<(u32, u64)>);

impl Pages {
    /// Notes the page of an address. Returns whether it was seen before; when there are too many to remember, that it was not.
    pub fn again(&mut self, pid: u32, address: u64) -> bool {
        let page = (pid, address / PAGE);
        if self.0.len() >= MOST_PAGES {
            return self.0.contains(&page);
        }
        !self.0.insert(page)
    }
}

/// Ranges of addresses of processes, each with what is known of it. Where two begin in one place the later one counts.
pub(super) struct Ranges<T>(FxHashMap<u32, BTreeMap<u64, Range<T>>>);

/// A range.
pub(super) struct Range<T> {
    /// Bytes.
    pub length: u64,
    /// What is known of it.
    pub known: T,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> Ranges<T> {
    /// Whether ranges of a process are remembered: those of so many are.
    pub fn has_room_for(&self, pid: u32) -> bool {
        self.0.len() < MOST || self.0.contains_key(&pid)
    }

    /// Those of a process, by where they begin.
    pub fn of(&mut self, pid: u32) -> &mut BTreeMap<u64, Range<T>> {
        self.0.entry(pid).or_default()
    }

    /// The one that an address is in: of those that begin before it, the last.
    pub fn at(&mut self, pid: u32, address: u64) -> Option<&mut T> {
        let (&start, range) = self.0.get_mut(&pid)?.range_mut(..=address).next_back()?;
        (address - start < range.length).then_some(&mut range.known)
    }

    /// All.
    pub fn all(&self) -> impl Iterator<Item = &Range<T>> {
        self.0.values().flat_map(BTreeMap::values)
    }
}
