//! Calls of one query alone: only those that its selection needs, in bounded memory.
//!
//! Queries on few of a block's stacks are answered from these, and those on more stacks than the [shared calls](crate::calls::SharedCalls) can
//! hold. While blocks are added, the smallest calls are summed up as [`OTHER`], so that the result is a tree of the largest ones whose totals are
//! exact except for what was small in each part.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::block::CallStacks;
use crate::calls::{CallTree, Calls, FrameCalls, MOST_DEPTH, ROOT};
use crate::cancellation::Cancellation;
use crate::dictionary::{Dictionary, StackNodeId};
use crate::error::StoreError;
use crate::resolved::FrameNames;

/// If there are too many calls, 1/KEPT of them are kept: some times what any picture shows.
const KEPT: usize = 4;
/// Name of the sum of small calls, as in Pyroscope's flame graphs.
const OTHER: &str = "other";

/// Values by number of the stack in a block.
pub(crate) type ByStack = HashMap<i32, i64, RandomState>;
/// Values by node of a dictionary.
pub(crate) type ByNode = IndexMap<StackNodeId, i64, RandomState>;

/// Calls of a query, and the value spent in each itself.
pub(crate) struct OwnCalls<const SIDES: usize> {
    calls: Calls,
    own: [Vec<i64>; SIDES],
    /// Most calls between two blocks.
    most: usize,
}

impl<const SIDES: usize> OwnCalls<SIDES> {
    pub fn new(most: usize) -> Self {
        Self { calls: Calls::default(), own: std::array::from_fn(|_| Vec::new()), most }
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
        let mut frames: Vec<Option<FrameCalls>> = Vec::new();
        frames.resize_with(block.names.len(), || None);
        // A stack shares its outer frames with the previous one.
        let (mut before, mut path): (&[i32], Vec<u32>) = (&[], Vec::new());
        for (stack, number) in block.stacks().zip(0..) {
            cancellation.check()?;
            let Some(&value) = values.get(&number) else { continue };
            let stack = &stack[..stack.len().min(MOST_DEPTH)];
            let shared = stack.iter().zip(before).take_while(|(one, other)| one == other).count();
            path.truncate(shared);
            for &element in &stack[shared..] {
                let caller = path.last().copied().unwrap_or(ROOT);
                let place = element.cast_unsigned() as usize;
                let known = frames[place].take();
                let frame = known.unwrap_or_else(|| self.calls.frame_calls(block, place, names));
                path.push(self.calls.called(caller, &frame));
                frames[place] = Some(frame);
            }
            self.add(side, path.last().copied().unwrap_or(ROOT), value);
            before = stack;
        }
        self.bound(cancellation)
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
        let mut known: HashMap<StackNodeId, u32, RandomState> = HashMap::default();
        let mut path = Vec::new();
        for (&node, &value) in values {
            let mut caller = dictionary.path_to_known(node, &known, &mut path).unwrap_or(ROOT);
            for node in path.drain(..).rev() {
                cancellation.check()?;
                caller = self.calls.call_of_frame(caller, dictionary, dictionary.node(node).frame, names);
                known.insert(node, caller);
            }
            self.add(side, caller, value);
        }
        self.bound(cancellation)
    }

    /// Builds the tree.
    pub fn tree(&self, cancellation: &Cancellation) -> Result<CallTree<SIDES>, StoreError> {
        self.calls.tree(&self.own, cancellation)
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

    /// Sums up the smallest calls if there are too many.
    fn bound(&mut self, cancellation: &Cancellation) -> Result<(), StoreError> {
        if self.calls.len() <= self.most { Ok(()) } else { self.prune(self.most / KEPT, cancellation) }
    }

    /// Keeps about `most` of the calls with the largest totals, each with its callers.
    fn prune(&mut self, most: usize, cancellation: &Cancellation) -> Result<(), StoreError> {
        let totals = self.calls.totals(&self.own, cancellation)?;
        let size = |place: usize| totals[place].iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        let mut sizes: Vec<u64> = (0..totals.len()).map(size).collect();
        let (_, &mut least, _) =
            sizes.select_nth_unstable_by_key(most.min(totals.len() - 1), |&size| Reverse(size));
        let mut kept = Self { calls: self.calls.with_same_names(), ..Self::new(self.most) };
        let other = kept.calls.name(OTHER);
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
            let (name, values) = if is_kept { (name, own()) } else { (other, totals[place]) };
            let call = kept.calls.call(above, name);
            places[place] = if is_kept { call } else { ROOT };
            values.into_iter().enumerate().for_each(|(side, value)| kept.add(side, call, value));
        }
        *self = kept;
        Ok(())
    }
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
        let tree = own.tree(&Cancellation::default()).unwrap();
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
        let mut own = OwnCalls::<1>::new(100);
        let go_on = Cancellation::default();
        own.add_nodes(0, &dictionary, &FrameNames::new(), &values, &go_on).unwrap();
        own.prune(3, &go_on).unwrap();
        let expected = [("main", 7), ("main;a", 0), ("main;a;deep", 50), ("main;other", 5), ("other", 1)];
        assert_eq!(paths(&own), expected.map(|(path, value)| (path.to_owned(), value)));
        // Later values meet the kept calls.
        own.add_nodes(0, &dictionary, &FrameNames::new(), &values, &go_on).unwrap();
        let total: i64 = paths(&own).iter().map(|(_, value)| value).sum();
        assert_eq!(total, 2 * 63);
        assert!(paths(&own).contains(&("main;a;deep".to_owned(), 100)));
    }
}
