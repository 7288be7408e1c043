//! Adds the stacks of blocks to the calls that queries share, before the blocks are first summed up.
//!
//! Several blocks are read at a time, without locking out other queries. An error here is ignored: it recurs, and is reported, where the data is
//! needed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

use crate::block::{Block, Cached, CallStacks, Part};
use crate::calls::{Calls, SharedCalls};
use crate::cancellation::Cancellation;
use crate::error::StoreError;
use crate::resolved::FrameNames;
use crate::shared::Shared;
use crate::tenant::Tenant;

/// Most blocks that are read at the same time.
const AT_ONCE: usize = 4;
/// Most stacks and frames of blocks that are read at the same time. A larger block is read alone.
const MOST_ROWS: u64 = 600_000;

/// Stacks of a block by name, and names for its nameless frames. `used`: numbers of the stacks, ascending; `None`: all.
pub(super) fn read(
    shared: &Shared,
    tenant: &Tenant,
    block: &Block,
    used: Option<&[i32]>,
) -> Result<(CallStacks, FrameNames), StoreError> {
    let stacks = block.call_stacks(&shared.bucket, used)?;
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
    let is_alone = |block: &&Arc<Block>| block.is_alone.load(Ordering::Relaxed);
    let new: Vec<&Arc<Block>> = blocks.iter().filter(|block| is_new(block) && !is_alone(block)).collect();
    for some in groups(&new) {
        let read = read_all(some, |block| read(shared, tenant, block, None));
        let mut calls = calls.write().unwrap_or_else(PoisonError::into_inner);
        if calls.generation != generation || calls.is_full || cancellation.check().is_err() {
            return;
        }
        for (block, read) in some.iter().zip(read) {
            let Ok((stacks, names)) = read else { continue };
            let add = |calls: &mut Calls| calls.extend_by(&stacks, &names, cancellation);
            let known = match calls.add(shared.options.shared_call_bytes(), &block.is_alone, add) {
                Ok(known) => known,
                Err(_) if block.is_alone.load(Ordering::Relaxed) => continue,
                Err(_) => return,
            };
            let key = (block.folder.clone(), Part::Calls(generation));
            shared.cache.insert(key, Cached::Calls(Arc::new(known)));
        }
    }
}

/// Groups of blocks that are read at a time: one for each CPU, unless they are large.
pub(super) fn groups<'b>(mut blocks: &'b [&'b Arc<Block>]) -> impl Iterator<Item = &'b [&'b Arc<Block>]> {
    let most = std::thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE);
    std::iter::from_fn(move || {
        let mut rows = 0_u64;
        let fits = |block: &&&Arc<Block>| {
            let counts = block.meta.counts;
            rows = rows.saturating_add(counts.stacks.saturating_add(counts.frames));
            rows <= MOST_ROWS
        };
        let fitting = blocks.iter().take(most).take_while(fits).count();
        let (some, rest) = blocks.split_at_checked(fitting.max(1))?;
        blocks = rest;
        Some(some)
    })
}

/// Reads blocks in parallel; the last one in this thread.
pub(super) fn read_all<T: Send>(
    blocks: &[&Arc<Block>],
    read: impl Fn(&Block) -> Result<T, StoreError> + Sync,
) -> Vec<Result<T, StoreError>> {
    let read = &read;
    std::thread::scope(|scope| {
        let Some((last, others)) = blocks.split_last() else { return Vec::new() };
        let others: Vec<_> = others.iter().map(|block| scope.spawn(move || read(block))).collect();
        let last = read(last);
        let joined = others.into_iter().map(|other| other.join().unwrap_or(Err(StoreError::Closed)));
        joined.chain([last]).collect()
    })
}
