//! Deduplicated function names and calls of all queried data, which makes stacks of different blocks comparable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use indexmap::IndexSet;

use crate::block::CallStacks;
use crate::cancellation::Cancellation;
use crate::dictionary::{Dictionary, FrameKey};
use crate::error::StoreError;
use crate::frame_calls::{FrameCalls, block_frames, frame_of};
use crate::resolved::FrameNames;

/// A call: index of the caller, or [`ROOT`], and index of the name.
type Call = (u32, u32);

/// Caller of the outermost frames.
pub(crate) const ROOT: u32 = u32::MAX;
/// Most frames of a stack that become calls, counted from the root. New stacks have no more; blocks that others wrote may.
pub(crate) const MOST_DEPTH: usize = 16_384;

/// Memory of a call and its sum, in bytes.
pub(crate) const CALL_BYTES: usize = 64;
/// A block or head shares its calls with others unless they take more than 1/MOST_PART of the memory for shared calls.
const MOST_PART: usize = 4;
/// Memory of a name beside its text, in bytes.
pub(crate) const NAME_BYTES: usize = 64;

/// Calls shared by a tenant's queries, and the number of times they were discarded.
#[derive(Default)]
pub(crate) struct SharedCalls {
    pub generation: u64,
    pub calls: Calls,
    /// There was no room for more: the next query discards them.
    pub is_full: bool,
}

impl SharedCalls {
    /// Adds the stacks of a block or head by `add`, or nothing if all calls would take more than `most_bytes`. Sets `is_alone` if these
    /// would leave too little for others.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] if there is no room; those of `add`.
    pub fn add<T>(
        &mut self,
        most_bytes: usize,
        is_alone: &AtomicBool,
        add: impl FnOnce(&mut Calls) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let before = (self.calls.names.len(), self.calls.nodes.len(), self.calls.name_bytes);
        let bytes = self.calls.bytes();
        self.calls.most_bytes = Some(most_bytes);
        let added = add(&mut self.calls);
        if let Err(error) = &added {
            match error {
                StoreError::TooLarge { .. } if self.calls.bytes() - bytes > most_bytes / MOST_PART => {
                    is_alone.store(true, Ordering::Relaxed);
                }
                StoreError::TooLarge { .. } => self.is_full = true,
                _ => {}
            }
            self.calls.names.truncate(before.0);
            self.calls.nodes.truncate(before.1);
            self.calls.name_bytes = before.2;
        }
        added
    }
}

/// Calls of functions by name. A caller precedes its callees.
#[derive(Default)]
pub(crate) struct Calls {
    names: IndexSet<Arc<str>, RandomState>,
    nodes: IndexSet<Call, RandomState>,
    /// Bytes of all names.
    name_bytes: usize,
    /// Most memory; `None`: unlimited.
    most_bytes: Option<usize>,
}

impl Calls {
    /// Extends `known`, the call of each node, to all nodes of a dictionary. Frames in `names` are shown with these names instead of their own.
    pub fn extend(
        &mut self,
        dictionary: &Dictionary,
        names: &FrameNames,
        known: &mut Vec<u32>,
        cancellation: &Cancellation,
    ) -> Result<(), StoreError> {
        let mut frames: Vec<Option<FrameCalls>> = Vec::new();
        frames.resize_with(dictionary.frames().len(), || None);
        for node in dictionary.nodes().skip(known.len()) {
            cancellation.check()?;
            self.check()?;
            let frame = frames[node.frame.0 as usize]
                .get_or_insert_with(|| frame_of(dictionary, node.frame, names, &mut |name| self.name(name)));
            let caller = node.caller.map_or(ROOT, |caller| known[caller.0 as usize]);
            known.push(self.called(caller, frame));
        }
        Ok(())
    }

    /// Adds all stacks of a block. Returns the call of each stack. Nameless frames in `names` are shown with these names.
    pub fn extend_by(
        &mut self,
        block: &CallStacks,
        names: &FrameNames,
        cancellation: &Cancellation,
    ) -> Result<Vec<u32>, StoreError> {
        let ids: Vec<u32> = block.texts.iter().map(|name| self.name(name)).collect();
        let frames = block_frames(block, names, &ids, &mut |name| self.name(name));
        let mut known = Vec::new();
        // A stack shares its outer frames with the previous one.
        let (mut before, mut path): (&[u32], Vec<u32>) = (&[], Vec::new());
        for (_, stack) in block.stacks() {
            cancellation.check()?;
            self.check()?;
            let stack = &stack[..stack.len().min(MOST_DEPTH)];
            let shared = stack.iter().zip(before).take_while(|(one, other)| one == other).count();
            path.truncate(shared);
            for &element in &stack[shared..] {
                let caller = path.last().copied().unwrap_or(ROOT);
                path.push(self.called(caller, &frames[element as usize]));
            }
            known.push(path.last().copied().unwrap_or(ROOT));
            before = stack;
        }
        Ok(known)
    }

    /// The innermost call of a frame below a caller.
    fn called(&mut self, caller: u32, frame: &FrameCalls) -> u32 {
        frame.names().iter().fold(caller, |caller, &name| self.call(caller, name))
    }

    /// Caller and name of a call.
    pub fn at(&self, place: usize) -> (u32, u32) {
        self.nodes[place]
    }

    /// The text of a name.
    pub fn text(&self, name: u32) -> &Arc<str> {
        &self.names[name as usize]
    }

    /// Number of names.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Memory of all names, in bytes.
    pub fn name_bytes(&self) -> usize {
        self.names.len() * NAME_BYTES + self.name_bytes
    }

    /// Call of each node of a dictionary, without adding any; `u32::MAX` for unknown ones.
    pub fn find(
        &self,
        dictionary: &Dictionary,
        names: &FrameNames,
        cancellation: &Cancellation,
    ) -> Result<Vec<u32>, StoreError> {
        let mut name = |name: &str| self.names.get_index_of(name).map_or(ROOT, |place| place as u32);
        let frames = (0..dictionary.frames().len() as u32).map(FrameKey);
        let frames: Vec<FrameCalls> =
            frames.map(|frame| frame_of(dictionary, frame, names, &mut name)).collect();
        let call = |caller: Option<u32>, &name: &u32| {
            let found = self.nodes.get_index_of(&(caller?, name))?;
            Some(found as u32)
        };
        let mut found: Vec<u32> = Vec::with_capacity(dictionary.nodes().len());
        for node in dictionary.nodes() {
            cancellation.check()?;
            let caller = match node.caller.map(|caller| found[caller.0 as usize]) {
                None => Some(ROOT),
                Some(caller) => Some(caller).filter(|&caller| caller != ROOT),
            };
            let place = frames[node.frame.0 as usize].names().iter().fold(caller, call);
            found.push(place.unwrap_or(ROOT));
        }
        Ok(found)
    }

    /// The id of a name.
    pub fn name(&mut self, name: &str) -> u32 {
        match self.names.get_index_of(name) {
            Some(place) => place as u32,
            None => self.shared_name(name.into()),
        }
    }

    /// The id of a name, whose text other calls share.
    pub fn shared_name(&mut self, name: Arc<str>) -> u32 {
        let bytes = name.len();
        let (place, is_new) = self.names.insert_full(name);
        self.name_bytes += if is_new { bytes } else { 0 };
        place as u32
    }

    /// The id of a call of a function with this name.
    pub fn call(&mut self, caller: u32, name: u32) -> u32 {
        self.nodes.insert_full((caller, name)).0 as u32
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Approximate memory use in bytes.
    fn bytes(&self) -> usize {
        self.nodes.len() * CALL_BYTES + self.name_bytes()
    }

    /// Fails if the limit is exceeded.
    fn check(&self) -> Result<(), StoreError> {
        self.most_bytes.map_or(Ok(()), |limit| StoreError::check_memory(self.bytes(), limit))
    }

    /// Value of each call with its callees, from the values of calls themselves.
    pub fn totals<const SIDES: usize>(
        &self,
        own: &[Vec<i64>; SIDES],
        cancellation: &Cancellation,
    ) -> Result<Vec<[i64; SIDES]>, StoreError> {
        let count = own.iter().map(Vec::len).max().unwrap_or(0).min(self.nodes.len());
        let mut totals = vec![[0_i64; SIDES]; count];
        for place in (0..count).rev() {
            cancellation.check()?;
            for side in 0..SIDES {
                let value = own[side].get(place).copied().unwrap_or(0);
                totals[place][side] = totals[place][side].saturating_add(value);
            }
            if let Some(&(caller, _)) = self.nodes.get_index(place)
                && caller != ROOT
            {
                let total = totals[place];
                let above = &mut totals[caller as usize];
                (0..SIDES).for_each(|side| above[side] = above[side].saturating_add(total[side]));
            }
        }
        Ok(totals)
    }

    /// Builds the tree from values by call.
    pub fn tree<const SIDES: usize>(
        &self,
        own: &[Vec<i64>; SIDES],
        cancellation: &Cancellation,
    ) -> Result<CallTree<SIDES>, StoreError> {
        let totals = self.totals(own, cancellation)?;
        let count = totals.len();
        let mut kept: Vec<u32> = vec![ROOT; count];
        let mut names: Vec<u32> = vec![ROOT; self.names.len()];
        let mut tree = CallTree { names: Vec::new(), nodes: Vec::new() };
        for (place, total) in totals.iter().enumerate() {
            cancellation.check()?;
            let Some(&(caller, name)) = self.nodes.get_index(place) else { break };
            if total.iter().all(|&value| value == 0) {
                continue;
            }
            if names[name as usize] == ROOT {
                names[name as usize] = tree.names.len() as u32;
                tree.names.push(self.names[name as usize].clone());
            }
            kept[place] = tree.nodes.len() as u32;
            let caller = (caller != ROOT).then(|| kept[caller as usize]);
            let own = std::array::from_fn(|side| own[side].get(place).copied().unwrap_or(0));
            tree.nodes.push(CallNode { caller, name: names[name as usize], own, total: *total });
        }
        Ok(tree)
    }
}

/// A merged tree of calls by function name, with values of one selection, or of several side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree<const SIDES: usize> {
    /// Names of functions.
    pub names: Vec<Arc<str>>,
    /// Calls with a nonzero value. A caller precedes its callees.
    pub nodes: Vec<CallNode<SIDES>>,
}

/// A function in the context of one path of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallNode<const SIDES: usize> {
    /// Index of the caller in the nodes; `None` for an outermost frame.
    pub caller: Option<u32>,
    /// Index of the name in the names.
    pub name: u32,
    /// Value spent in the function itself.
    pub own: [i64; SIDES],
    /// Value spent in the function and its callees.
    pub total: [i64; SIDES],
}

impl<const SIDES: usize> CallTree<SIDES> {
    /// Total of all outermost frames.
    pub fn total(&self) -> [i64; SIDES] {
        let roots = self.nodes.iter().filter(|node| node.caller.is_none());
        roots.fold([0; SIDES], |sum, node| std::array::from_fn(|side| sum[side] + node.total[side]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds calls of as many functions below each other.
    fn add(shared: &mut SharedCalls, is_alone: &AtomicBool, name: &str, calls: usize) -> bool {
        let added = shared.add(40 * CALL_BYTES + 500, is_alone, |all| {
            let name = all.name(name);
            (0..calls).try_fold(ROOT, |caller, _| all.check().map(|()| all.call(caller, name)))
        });
        added.is_ok()
    }

    #[test]
    fn stacks_without_room_leave_nothing_and_the_largest_are_alone() {
        let mut shared = SharedCalls::default();
        let [small, large, another] = [false; 3].map(AtomicBool::new);
        assert!(add(&mut shared, &small, "f", 20));
        assert!(!add(&mut shared, &large, "g", 1000));
        assert!(large.load(Ordering::Relaxed) && !shared.is_full);
        assert_eq!((shared.calls.len(), shared.calls.names.len()), (20, 1));
        // The room is taken by others: these may fit once all are discarded.
        assert!(add(&mut shared, &another, "h", 18));
        assert!(!add(&mut shared, &another, "i", 10));
        assert!(!another.load(Ordering::Relaxed) && shared.is_full);
        assert!(!small.load(Ordering::Relaxed));
        assert_eq!(shared.calls.len(), 38);
    }
}
