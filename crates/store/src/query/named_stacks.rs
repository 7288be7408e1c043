//! Selected stacks of a block or a head by the names of their functions.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::name_table::NameTable;
use super::stack_parts::StackPart;
use crate::block::CallStacks;
use crate::calls::MOST_DEPTH;
use crate::cancellation::Cancellation;
use crate::dictionary::{Dictionary, FrameKey, StackNodeId};
use crate::error::StoreError;
use crate::frame_calls::{FrameCalls, block_frames, frame_of};
use crate::resolved::FrameNames;

/// Values by number of the stack in a block, ascending.
pub(super) type ByStack = Vec<(i32, i64)>;
/// Values by node of a dictionary.
pub(super) type ByNode = IndexMap<StackNodeId, i64, RandomState>;

/// Stacks of a block that have values, on a side.
pub(super) fn of_block(
    side: usize,
    (block, names): (&CallStacks, &FrameNames),
    values: &ByStack,
    table: &NameTable,
    cancellation: &Cancellation,
) -> Result<StackPart, StoreError> {
    let frames = block_frames(block, names, &table.ids(&block.texts), &mut |name| table.id(name));
    let mut part = StackPart::new(side);
    let mut values = values.iter().peekable();
    for (number, stack) in block.stacks() {
        cancellation.check()?;
        let is_of_it = |&&(stack, _): &&(i32, i64)| usize::try_from(stack).is_ok_and(|stack| stack == number);
        let Some(&(_, value)) = values.next_if(is_of_it) else { continue };
        let stack = &stack[..stack.len().min(MOST_DEPTH)];
        let names = stack.iter().flat_map(|&place| frames[place as usize].names().iter().copied());
        if !part.push(names, value) {
            return Err(too_many());
        }
    }
    part.shrink();
    Ok(part)
}

/// Nodes of a dictionary that have values, on a side.
pub(super) fn of_nodes(
    side: usize,
    (dictionary, names): (&Dictionary, &FrameNames),
    values: &ByNode,
    table: &NameTable,
    cancellation: &Cancellation,
) -> Result<StackPart, StoreError> {
    let mut known: HashMap<FrameKey, FrameCalls, RandomState> = HashMap::default();
    let mut part = StackPart::new(side);
    let mut path: Vec<u32> = Vec::new();
    for (&node, &value) in values {
        path.clear();
        for frame in dictionary.frames_of(node) {
            cancellation.check()?;
            let calls = known
                .entry(frame)
                .or_insert_with(|| frame_of(dictionary, frame, names, &mut |name| table.id(name)));
            path.extend(calls.names().iter().rev());
        }
        if !part.push(path.iter().rev().copied(), value) {
            return Err(too_many());
        }
    }
    part.shrink();
    Ok(part)
}

/// More frames in one block than any block is made of.
fn too_many() -> StoreError {
    StoreError::TooLarge { needed: usize::MAX, limit: u32::MAX as usize }
}
