//! Adds the stacks of blocks to the calls that queries share, before the blocks are first summed up.
//!
//! Several blocks are read at a time, without locking out other queries. An error here is ignored: it recurs, and is reported, where the data is
//! needed.

use std::sync::{Arc, PoisonError, RwLock};

use super::CALL_BYTES;
use crate::block::{Block, Cached, CallStacks, Part};
use crate::calls::SharedCalls;
use crate::cancellation::Cancellation;
use crate::error::StoreError;
use crate::resolved::FrameNames;
use crate::shared::Shared;
use crate::tenant::Tenant;

/// Most blocks that are read at the same time.
const AT_ONCE: usize = 4;

/// The stacks of a block by name, and names for its nameless frames.
pub(super) fn read(
    shared: &Shared,
    tenant: &Tenant,
    block: &Block,
) -> Result<(CallStacks, FrameNames), StoreError> {
    let stacks = block.call_stacks(&shared.bucket)?;
    let names = shared.symbols.names(&shared.bucket, tenant, &stacks.nameless);
    Ok((stacks, names))
}

/// Adds the stacks of blocks to the calls, unless they have been added.
pub(crate) fn prepare(
    shared: &Shared,
    tenant: &Tenant,
    calls: &RwLock<SharedCalls>,
    blocks: &[Arc<Block>],
    cancellation: &Cancellation,
) {
    let generation = calls.read().unwrap_or_else(PoisonError::into_inner).generation;
    let is_new = |block: &&Arc<Block>| {
        let key = (block.folder.clone(), Part::Calls(generation));
        shared.cache.get(&key).is_none()
    };
    let new: Vec<&Arc<Block>> = blocks.iter().filter(is_new).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE);
    for some in new.chunks(threads) {
        let read = read_all(shared, tenant, some);
        let mut calls = calls.write().unwrap_or_else(PoisonError::into_inner);
        let is_too_much = calls.calls.len() * CALL_BYTES > shared.options.query_bytes;
        if calls.generation != generation || is_too_much || cancellation.check().is_err() {
            return;
        }
        for (block, read) in some.iter().zip(read) {
            let Ok((stacks, names)) = read else { continue };
            let Ok(known) = calls.calls.extend_by(&stacks, &names, cancellation) else { return };
            let key = (block.folder.clone(), Part::Calls(generation));
            shared.cache.insert(key, Cached::Calls(Arc::new(known)));
        }
    }
}

/// Reads blocks in parallel; the last one in this thread.
fn read_all(
    shared: &Shared,
    tenant: &Tenant,
    blocks: &[&Arc<Block>],
) -> Vec<Result<(CallStacks, FrameNames), StoreError>> {
    std::thread::scope(|scope| {
        let Some((last, others)) = blocks.split_last() else { return Vec::new() };
        let others: Vec<_> =
            others.iter().map(|block| scope.spawn(move || read(shared, tenant, block))).collect();
        let last = read(shared, tenant, last);
        let joined = others.into_iter().map(|other| other.join().unwrap_or(Err(StoreError::Closed)));
        joined.chain([last]).collect()
    })
}
