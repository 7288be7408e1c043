//! Calls of one query alone: only those that its selection needs, in bounded memory.
//!
//! Queries on few of a block's stacks are answered from these, and those on more stacks than the [shared calls](crate::calls::SharedCalls) can
//! hold. While blocks are added, the smallest calls are summed up as [`OTHER`], so that the result is a tree of the largest ones whose totals are
//! exact except for what was small in each part.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::name_table::NameTable;
use super::stack_parts::{CallSink, StackPart, largest_calls};
use crate::calls::{CallTree, Calls, ROOT};
use crate::cancellation::Cancellation;
use crate::error::StoreError;

/// If there are too many calls, 1/KEPT of them are kept: some times what any picture shows.
const KEPT: usize = 4;
/// Name of the sum of small calls, as in Pyroscope's flame graphs.
const OTHER: &str = "other";

/// Calls of a query, and the value spent in each itself.
pub(crate) struct OwnCalls<const SIDES: usize> {
    calls: Calls,
    own: [Vec<i64>; SIDES],
    /// Most calls.
    most: usize,
    /// Stacks that are not among the calls yet.
    parts: Vec<StackPart>,
    /// Names of these.
    names: NameTable,
    /// By id among `names`: the id among those of the calls.
    known: HashMap<u32, u32, RandomState>,
    /// Most bytes of stacks and their names.
    most_bytes: usize,
}

impl<const SIDES: usize> OwnCalls<SIDES> {
    /// No calls. `most`: most of them; `most_bytes`: most memory for stacks that become calls together, with their names.
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            calls: Calls::default(),
            own: std::array::from_fn(|_| Vec::new()),
            most,
            parts: Vec::new(),
            names: NameTable::default(),
            known: HashMap::default(),
            most_bytes,
        }
    }

    /// The table that names of all stacks are in. Parts that are made with it have to be added together: adding may empty it.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    /// Builds the tree.
    pub fn tree(mut self, cancellation: &Cancellation) -> Result<CallTree<SIDES>, StoreError> {
        self.fold(cancellation)?;
        self.calls.tree(&self.own, cancellation)
    }

    /// Adds stacks.
    pub fn add_parts(
        &mut self,
        parts: impl IntoIterator<Item = StackPart>,
        cancellation: &Cancellation,
    ) -> Result<(), StoreError> {
        self.parts.extend(parts);
        let stacks: usize = self.parts.iter().map(StackPart::bytes).sum();
        if stacks + self.names.bytes() <= self.most_bytes { Ok(()) } else { self.fold(cancellation) }
    }

    /// Whether the names take more memory than calls may.
    fn has_long_names(&self) -> bool {
        self.calls.name_bytes() > self.most_bytes / 2
    }

    /// Turns the stacks into calls: into the largest ones if there are too many.
    fn fold(&mut self, cancellation: &Cancellation) -> Result<(), StoreError> {
        let parts = std::mem::take(&mut self.parts);
        let calls: usize = parts.iter().map(StackPart::most_calls).sum();
        let most = if calls <= self.most { calls } else { self.most / KEPT };
        largest_calls(&parts, most, self, cancellation)?;
        // The ids among the calls' names change when these are summed up.
        self.known.clear();
        if self.names.bytes() > self.most_bytes / KEPT {
            self.names = NameTable::default();
        }
        self.bound(cancellation)
    }

    /// Adds the value of a call. Returns the call's number.
    fn add(&mut self, caller: u32, name: u32, values: [i64; SIDES]) -> u32 {
        let call = self.calls.call(caller, name);
        for (own, value) in self.own.iter_mut().zip(values) {
            own.resize(self.calls.len(), 0);
            if let Some(sum) = own.get_mut(call as usize) {
                *sum = sum.saturating_add(value);
            }
        }
        call
    }

    /// Sums up the smallest calls if there are too many, or if their names are too long.
    fn bound(&mut self, cancellation: &Cancellation) -> Result<(), StoreError> {
        if self.calls.len() > self.most {
            self.prune(self.most / KEPT, cancellation)?;
        }
        while self.has_long_names() && self.calls.len() > 1 {
            self.prune(self.calls.len() / KEPT, cancellation)?;
        }
        Ok(())
    }

    /// Keeps about `most` of the calls with the largest totals, each with its callers.
    fn prune(&mut self, most: usize, cancellation: &Cancellation) -> Result<(), StoreError> {
        let totals = self.calls.totals(&self.own, cancellation)?;
        let size = |place: usize| totals[place].iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        let mut sizes: Vec<u64> = (0..totals.len()).map(size).collect();
        let (_, &mut least, _) =
            sizes.select_nth_unstable_by_key(most.min(totals.len() - 1), |&size| Reverse(size));
        let mut kept = Self::new(self.most, self.most_bytes);
        let other = kept.calls.name(OTHER);
        let mut names = vec![None; self.calls.name_count()];
        let mut places = vec![ROOT; totals.len()];
        for place in 0..totals.len() {
            cancellation.check()?;
            let (caller, name) = self.calls.at(place);
            let above = if caller == ROOT { ROOT } else { places[caller as usize] };
            if caller != ROOT && above == ROOT {
                // Part of a sum already.
                continue;
            }
            let is_kept = size(place) > least;
            let own = || std::array::from_fn(|side| self.own[side].get(place).copied().unwrap_or(0));
            let mut kept_name = |name: u32| {
                let calls = &mut kept.calls;
                *names[name as usize].get_or_insert_with(|| calls.shared_name(self.calls.text(name).clone()))
            };
            let (name, values) = if is_kept { (kept_name(name), own()) } else { (other, totals[place]) };
            let call = kept.add(above, name, values);
            places[place] = if is_kept { call } else { ROOT };
        }
        *self = kept;
        Ok(())
    }
}

impl<const SIDES: usize> CallSink<SIDES> for OwnCalls<SIDES> {
    fn call(&mut self, caller: u32, name: u32, own: [i64; SIDES]) -> u32 {
        let (names, calls) = (&self.names, &mut self.calls);
        let name = *self.known.entry(name).or_insert_with(|| calls.shared_name(names.text(name)));
        self.add(caller, name, own)
    }

    fn other(&mut self, caller: u32, total: [i64; SIDES]) {
        let name = self.calls.name(OTHER);
        self.add(caller, name, total);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::named_stacks::{ByNode, of_nodes};
    use super::*;
    use crate::dictionary::{Dictionary, StackNodeId, StoredFrame};
    use crate::resolved::FrameNames;

    fn node(dictionary: &mut Dictionary, stack: &str) -> StackNodeId {
        let frames: Vec<_> = stack
            .split(';')
            .map(|name| {
                let function = dictionary.text(name);
                dictionary.frame(StoredFrame { function, ..StoredFrame::default() })
            })
            .collect();
        dictionary.stack(frames).unwrap()
    }

    /// Each call's path with its own value, sorted.
    fn paths(own: &OwnCalls<1>) -> Vec<(String, i64)> {
        let tree = own.calls.tree(&own.own, &Cancellation::default()).unwrap();
        let mut paths: Vec<(String, i64)> = Vec::new();
        for call in &tree.nodes {
            let name = &tree.names[call.name as usize];
            let path = call
                .caller
                .map_or_else(|| name.to_string(), |caller| format!("{};{name}", paths[caller as usize].0));
            paths.push((path, call.own[0]));
        }
        paths.sort();
        paths
    }

    #[test]
    fn the_smallest_calls_become_one_beside_their_siblings() {
        let mut dictionary = Dictionary::default();
        let stacks = [("main;a;deep", 50), ("main;b", 3), ("main;c;x", 2), ("start;y", 1), ("main", 7)];
        let values: ByNode =
            stacks.iter().map(|&(stack, value)| (node(&mut dictionary, stack), value)).collect();
        let mut own = OwnCalls::<1>::new(100, 1 << 20);
        let go_on = Cancellation::default();
        let add = |own: &mut OwnCalls<1>| {
            let stacks = (&dictionary, &FrameNames::new());
            let part = of_nodes(0, stacks, &values, own.names(), &go_on).unwrap();
            own.add_parts([part], &go_on).unwrap();
            own.fold(&go_on).unwrap();
        };
        add(&mut own);
        own.prune(3, &go_on).unwrap();
        let expected = [("main", 7), ("main;a", 0), ("main;a;deep", 50), ("main;other", 5), ("other", 1)];
        assert_eq!(paths(&own), expected.map(|(path, value)| (path.to_owned(), value)));
        // Later values meet the kept calls.
        add(&mut own);
        let total: i64 = paths(&own).iter().map(|(_, value)| value).sum();
        assert_eq!(total, 2 * 63);
        assert!(paths(&own).contains(&("main;a;deep".to_owned(), 100)));
    }
}
