//! The order of a block's frames and stacks: those of a service alone are adjacent, so that a query on it reads nothing else; and among them similar
//! ones, which makes a block small. What several services have comes first.

use twox_hash::XxHash3_64;

use crate::dictionary::{Dictionary, FrameKey, StoredFrame};

/// Owner of a stack or a frame: nobody, several services, or one of them by its rank from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner(Option<u32>);

impl Owner {
    const SEVERAL: Self = Self(Some(0));

    /// The service of this rank, from 0.
    pub fn service(rank: u32) -> Self {
        Self(Some(rank.saturating_add(1)))
    }

    /// Adds owners.
    pub fn add(&mut self, other: Self) {
        *self = match (self.0, other.0) {
            (None, _) => other,
            (_, None) => *self,
            (Some(one), Some(another)) if one == another => *self,
            _ => Self::SEVERAL,
        };
    }

    fn is_somebody(self) -> bool {
        self.0.is_some()
    }
}

/// Frames and stacks of a dictionary in a block's order, without those that no sample uses.
pub(crate) struct BlockOrder {
    /// Frames in block order.
    pub frames: Vec<FrameKey>,
    /// Number in the block by frame of the dictionary; `u32::MAX` for an unused frame.
    pub frame_numbers: Vec<u32>,
    /// Stacks in block order, as their innermost nodes.
    pub stacks: Vec<u32>,
    /// Number in the block by node; `u32::MAX` if no sample has this stack.
    pub stack_numbers: Vec<u32>,
}

impl BlockOrder {
    /// Orders what somebody has. `owners`: of the stack that each node is, if it is one.
    pub fn new(dictionary: &Dictionary, owners: &[Owner]) -> Self {
        let nodes: Vec<_> = dictionary.nodes().copied().collect();
        let mut wanted = owners.to_vec();
        wanted.resize(nodes.len(), Owner::default());
        for place in (0..nodes.len()).rev() {
            if let Some(caller) = nodes[place].caller {
                let owner = wanted[place];
                wanted[caller.0 as usize].add(owner);
            }
        }
        let mut frame_owners = vec![Owner::default(); dictionary.frames().len()];
        for (node, &owner) in nodes.iter().zip(&wanted) {
            frame_owners[node.frame.0 as usize].add(owner);
        }
        let mut frames: Vec<FrameKey> = (0..frame_owners.len())
            .filter(|&place| frame_owners[place].is_somebody())
            .map(|place| FrameKey(place as u32))
            .collect();
        frames.sort_by_cached_key(|&frame| {
            (frame_owners[frame.0 as usize], content(dictionary, dictionary.frame_at(frame)))
        });
        let mut frame_numbers = vec![u32::MAX; frame_owners.len()];
        for (number, frame) in frames.iter().enumerate() {
            frame_numbers[frame.0 as usize] = number as u32;
        }
        // Children of each node by frame number: all nodes sorted by caller, then frame.
        let caller = |place: u32| nodes[place as usize].caller.map_or(0, |caller| caller.0 + 1);
        let mut children: Vec<u32> =
            (0..nodes.len()).filter(|&place| wanted[place].is_somebody()).map(|place| place as u32).collect();
        children.sort_unstable_by_key(|&place| {
            (caller(place), frame_numbers[nodes[place as usize].frame.0 as usize])
        });
        let mut begins = vec![0_u32; nodes.len() + 2];
        children.iter().for_each(|&place| begins[caller(place) as usize + 1] += 1);
        for place in 1..begins.len() {
            begins[place] += begins[place - 1];
        }
        let of = |caller: usize| &children[begins[caller] as usize..begins[caller + 1] as usize];
        let owner = |place: u32| owners.get(place as usize).copied().unwrap_or_default();
        let (mut stacks, mut stack_numbers) = (Vec::new(), vec![u32::MAX; nodes.len()]);
        let mut pending: Vec<u32> = of(0).iter().rev().copied().collect();
        while let Some(place) = pending.pop() {
            if owner(place).is_somebody() {
                stacks.push(place);
            }
            pending.extend(of(place as usize + 1).iter().rev());
        }
        // Keeps the order among those of an owner.
        stacks.sort_by_key(|&place| owner(place));
        for (number, &place) in stacks.iter().enumerate() {
            stack_numbers[place as usize] = number as u32;
        }
        Self { frames, frame_numbers, stacks, stack_numbers }
    }
}

type Content<'d> = (&'d str, &'d str, &'d str, u32, u32, &'d str, &'d str, u64, bool, bool);

/// The sort key of a frame.
fn content(dictionary: &Dictionary, frame: StoredFrame) -> Content<'_> {
    let text = |id| dictionary.resolve(id);
    (
        text(frame.mapping),
        text(frame.function),
        text(frame.system_name),
        frame.line,
        frame.start_line,
        text(frame.file),
        text(frame.build_id),
        frame.address,
        frame.is_file_offset,
        frame.inlined,
    )
}

/// Hash (64-bit XXH3) of each node's stack by content, equal in all blocks and on all machines.
pub(crate) fn stack_hashes(dictionary: &Dictionary) -> Vec<u64> {
    let mut bytes = Vec::new();
    let frame_hash = |&frame: &StoredFrame| {
        let (mapping, function, system_name, line, start_line, file, build_id, address, is_offset, inlined) =
            content(dictionary, frame);
        bytes.clear();
        for text in [mapping, function, system_name, file, build_id] {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        let flags = u64::from(inlined) | u64::from(is_offset) << 1;
        for number in [u64::from(line), u64::from(start_line), address, flags] {
            bytes.extend(number.to_le_bytes());
        }
        XxHash3_64::oneshot(&bytes)
    };
    let frames: Vec<u64> = dictionary.frames().map(frame_hash).collect();
    let mut hashes: Vec<u64> = Vec::with_capacity(dictionary.nodes().len());
    for node in dictionary.nodes() {
        let caller = node.caller.map_or(0, |caller| hashes[caller.0 as usize]);
        let pair = [caller.to_le_bytes(), frames[node.frame.0 as usize].to_le_bytes()];
        hashes.push(XxHash3_64::oneshot(pair.as_flattened()));
    }
    hashes
}
