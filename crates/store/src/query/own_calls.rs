//! Calls of one query alone: only those that its selection needs, in bounded memory.
//!
//! Queries on few of a block's stacks are answered from these, and those on more stacks than the [shared calls](crate::calls::SharedCalls) can
//! hold. While blocks are added, the smallest calls are summed up as [`OTHER`], so that the result is a tree of the largest ones whose totals are
//! exact except for what was small in each part.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::stack_parts::{CallSink, StackPart, largest_calls};
use crate::block::CallStacks;
use crate::calls::{CallTree, Calls, FrameCalls, MOST_DEPTH, ROOT};
use crate::cancellation::Cancellation;
use crate::dictionary::{Dictionary, FrameKey, StackNodeId};
use crate::error::StoreError;
use crate::resolved::FrameNames;

/// If there are too many calls, 1/KEPT of them are kept: some times what any picture shows.
const KEPT: usize = 4;
/// Name of the sum of small calls, as in Pyroscope's flame graphs.
const OTHER: &str = "other";

/// Values by number of the stack in a block, ascending.
pub(crate) type ByStack = Vec<(i32, i64)>;
/// Values by node of a dictionary.
pub(crate) type ByNode = IndexMap<StackNodeId, i64, RandomState>;

/// Calls of a query, and the value spent in each itself.
pub(crate) struct OwnCalls<const SIDES: usize> {
    calls: Calls,
    own: [Vec<i64>; SIDES],
    /// Most calls.
    most: usize,
    /// Stacks that are not among the calls yet.
    parts: Vec<StackPart>,
    /// Most bytes of these.
    most_bytes: usize,
}

impl<const SIDES: usize> OwnCalls<SIDES> {
    /// No calls. `most`: most of them; `most_bytes`: most memory for stacks that become calls together.
    pub fn new(most: usize, most_bytes: usize) -> Self {
        let own = std::array::from_fn(|_| Vec::new());
        Self { calls: Calls::default(), own, most, parts: Vec::new(), most_bytes }
    }

    /// Adds values of a block's stacks to a side.
    pub fn add_block(
        &mut self,
        side: usize,
        block: &CallStacks,
        names: &FrameNames,
        values: &ByStack,
        cancellation: &Cancellation,
    ) -> Result<(), StoreError> {
        let frames = self.calls.frame_names(block, names);
        let mut part = StackPart::new(side);
        let mut values = values.iter().peekable();
        for (number, stack) in block.stacks() {
            cancellation.check()?;
            let is_of_it =
                |&&(stack, _): &&(i32, i64)| usize::try_from(stack).is_ok_and(|stack| stack == number);
            let Some(&(_, value)) = values.next_if(is_of_it) else { continue };
            let stack = &stack[..stack.len().min(MOST_DEPTH)];
            let names = stack.iter().flat_map(|&place| frames[place as usize].names().iter().copied());
            if !part.push(names, value) {
                return Err(too_many());
            }
        }
        self.add_part(part, cancellation)
    }

    /// Adds values of a dictionary's nodes to a side.
    pub fn add_nodes(
        &mut self,
        side: usize,
        dictionary: &Dictionary,
        names: &FrameNames,
        values: &ByNode,
        cancellation: &Cancellation,
    ) -> Result<(), StoreError> {
        let mut known: HashMap<FrameKey, FrameCalls, RandomState> = HashMap::default();
        let mut part = StackPart::new(side);
        let mut path: Vec<u32> = Vec::new();
        for (&node, &value) in values {
            path.clear();
            for frame in dictionary.frames_of(node) {
                cancellation.check()?;
                let calls =
                    known.entry(frame).or_insert_with(|| self.calls.calls_of_frame(dictionary, frame, names));
                path.extend(calls.names().iter().rev());
            }
            if !part.push(path.iter().rev().copied(), value) {
                return Err(too_many());
            }
        }
        self.add_part(part, cancellation)
    }

    /// Builds the tree.
    pub fn tree(mut self, cancellation: &Cancellation) -> Result<CallTree<SIDES>, StoreError> {
        self.fold(cancellation)?;
        self.calls.tree(&self.own, cancellation)
    }

    fn add_part(&mut self, mut part: StackPart, cancellation: &Cancellation) -> Result<(), StoreError> {
        part.shrink();
        self.parts.push(part);
        let bytes: usize = self.parts.iter().map(StackPart::bytes).sum();
        if bytes <= self.most_bytes && !self.has_long_names() { Ok(()) } else { self.fold(cancellation) }
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
        self.bound(cancellation)
    }

    fn add(&mut self, side: usize, call: u32, value: i64) {
        let own = &mut self.own[side];
        if own.len() < self.calls.len() {
            own.resize(self.calls.len(), 0);
        }
        if let Some(sum) = own.get_mut(call as usize) {
            *sum = sum.saturating_add(value);
        }
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
            let call = kept.calls.call(above, name);
            places[place] = if is_kept { call } else { ROOT };
            values.into_iter().enumerate().for_each(|(side, value)| kept.add(side, call, value));
        }
        *self = kept;
        Ok(())
    }
}

impl<const SIDES: usize> CallSink<SIDES> for OwnCalls<SIDES> {
    fn call(&mut self, caller: u32, name: u32, own: [i64; SIDES]) -> u32 {
        let call = self.calls.call(caller, name);
        own.into_iter().enumerate().for_each(|(side, value)| self.add(side, call, value));
        call
    }

    fn other(&mut self, caller: u32, total: [i64; SIDES]) {
        let name = self.calls.name(OTHER);
        self.call(caller, name, total);
    }
}

/// More frames in one block than any block is made of.
fn too_many() -> StoreError {
    StoreError::TooLarge { needed: usize::MAX, limit: u32::MAX as usize }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::dictionary::StoredFrame;

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
        own.add_nodes(0, &dictionary, &FrameNames::new(), &values, &go_on).unwrap();
        own.fold(&go_on).unwrap();
        own.prune(3, &go_on).unwrap();
        let expected = [("main", 7), ("main;a", 0), ("main;a;deep", 50), ("main;other", 5), ("other", 1)];
        assert_eq!(paths(&own), expected.map(|(path, value)| (path.to_owned(), value)));
        // Later values meet the kept calls.
        own.add_nodes(0, &dictionary, &FrameNames::new(), &values, &go_on).unwrap();
        own.fold(&go_on).unwrap();
        let total: i64 = paths(&own).iter().map(|(_, value)| value).sum();
        assert_eq!(total, 2 * 63);
        assert!(paths(&own).contains(&("main;a;deep".to_owned(), 100)));
    }
}
