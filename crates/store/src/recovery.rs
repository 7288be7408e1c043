//! Opens stored data: complete blocks, and log segments that did not become blocks.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::block::{Block, BlockMeta, VERSION};
use crate::clock::now;
use crate::error::StoreError;
use crate::head::Head;
use crate::live::live;
use crate::maintenance::remove;
use crate::shared::Shared;
use crate::taken::Taken;
use crate::tenant::Tenant;
use crate::wal;

/// Time for which another server may still be writing an incomplete block, in milliseconds.
const WRITING: i64 = 3_600_000;

/// Updates the blocks of all tenants: opens new ones and forgets deleted ones. Removes incomplete blocks left by a crash.
pub(crate) fn refresh(shared: &Shared) -> Result<(), StoreError> {
    for name in shared.bucket.folders("")? {
        if let Ok(tenant) = Tenant::new(&name) {
            refresh_symbols(shared, &tenant)?;
            refresh_blocks(shared, &tenant)?;
        }
    }
    Ok(())
}

/// Updates the symbols of a tenant.
fn refresh_symbols(shared: &Shared, tenant: &Tenant) -> Result<(), StoreError> {
    let is_new = shared.symbols.open(&shared.bucket, tenant)?;
    if let Some(state) = shared.tenants.get(tenant).filter(|_| is_new) {
        state.forget_calls();
    }
    Ok(())
}

/// Updates the blocks of a tenant.
pub(crate) fn refresh_blocks(shared: &Shared, tenant: &Tenant) -> Result<(), StoreError> {
    let state = shared.tenants.get(tenant);
    // Blocks written from here on may be missing from the listing.
    let known: HashMap<String, Arc<Block>> = state
        .iter()
        .flat_map(|state| state.read().blocks.clone())
        .map(|block| (block.meta.id.clone(), block))
        .collect();
    let mut blocks: Vec<Arc<Block>> = Vec::new();
    for id in shared.bucket.folders(&format!("{tenant}/blocks"))? {
        match known.get(&id) {
            Some(block) if block.meta.is_read() => blocks.push(block.clone()),
            _ => {
                blocks.extend(open_or_remove(shared, &format!("{tenant}/blocks/{id}").into())?.map(Arc::new))
            }
        }
    }
    let kept = live(&blocks.iter().map(|block| &block.meta).collect::<Vec<_>>());
    let (there, gone): (Vec<_>, Vec<_>) = blocks.into_iter().zip(kept).partition(|&(_, is_live)| is_live);
    if !shared.bucket.is_shared() {
        gone.iter().try_for_each(|(block, _)| remove(shared, &block.folder))?;
    }
    if there.is_empty() && known.is_empty() {
        return Ok(());
    }
    let there: Vec<Arc<Block>> = there.into_iter().map(|(block, _)| block).collect();
    let state = shared.tenants.get_or_new(tenant);
    state.exchange(&shared.server, &known.into_keys().collect(), there);
    Ok(())
}

/// Opens a complete block. A damaged block is left where it is; one that was never completed is removed.
fn open_or_remove(shared: &Shared, folder: &Arc<str>) -> Result<Option<Block>, StoreError> {
    match open_block(shared, folder) {
        Ok(Some(block)) => return Ok(Some(block)),
        Ok(None) if !shared.bucket.is_shared() => remove_incomplete(shared, folder)?,
        Ok(None) => {
            let newest = shared.bucket.list(folder)?.into_iter().map(|(_, written)| written).max();
            if newest.is_some_and(|newest| now().0.saturating_sub(newest.0) > WRITING) {
                remove_incomplete(shared, folder)?;
            }
        }
        Err(error @ StoreError::Damaged { .. }) => {
            let mut reported = shared.reported.lock().unwrap_or_else(PoisonError::into_inner);
            if reported.insert(folder.to_string()) {
                shared.counters.damaged_blocks.fetch_add(1, Ordering::Relaxed);
                tracing::error!(block = &**folder, %error, "a block cannot be opened and is left out of all answers");
            }
            return Ok(left_out(folder));
        }
        Err(error) => return Err(error),
    }
    Ok(None)
}

/// Removes a block whose writing was interrupted. Its samples are in the log, or in the blocks that it was to replace.
fn remove_incomplete(shared: &Shared, folder: &Arc<str>) -> Result<(), StoreError> {
    tracing::warn!(block = &**folder, "a block without block.json is removed: it was not completed");
    remove(shared, folder)
}

/// A block that cannot be opened, so that answers say what they lack; `None` if its name tells no times.
fn left_out(folder: &Arc<str>) -> Option<Block> {
    let (_, id) = folder.rsplit_once('/')?;
    let block = Block::new(BlockMeta::unread(id)?, folder.clone());
    block.set_aside.store(true, Ordering::Relaxed);
    Some(block)
}

/// Opens a block, or returns `None` if it was never completed.
fn open_block(shared: &Shared, folder: &Arc<str>) -> Result<Option<Block>, StoreError> {
    let path = format!("{folder}/block.json");
    let Some((json, _)) = shared.bucket.find(&path)? else { return Ok(None) };
    let damaged = |message: String| StoreError::Damaged { path: path.clone(), message };
    let meta: BlockMeta = serde_json::from_slice(&json).map_err(|error| damaged(error.to_string()))?;
    if meta.version > VERSION {
        return Err(damaged(format!(
            "it has version {} of the layout, and this server reads up to {VERSION}; update it",
            meta.version
        )));
    }
    if !folder.ends_with(&meta.id) {
        return Err(damaged(format!("it is of another block, {}", meta.id)));
    }
    Ok(Some(Block::new(meta, folder.clone())))
}

/// Removes blocks of a bucket that were merged, by any server, long enough ago.
pub(crate) fn remove_replaced(shared: &Shared, grace: i64) -> Result<(), StoreError> {
    for (name, state) in shared.tenants.all() {
        let blocks = state.read().blocks.clone();
        let old = |block: &&Arc<Block>| now().0.saturating_sub(block.meta.created_ms.0) > grace;
        let replaced: HashSet<&String> =
            blocks.iter().filter(old).flat_map(|block| &block.meta.replaces).collect();
        if replaced.is_empty() {
            continue;
        }
        for id in shared.bucket.folders(&format!("{name}/blocks"))? {
            if replaced.contains(&id) {
                remove(shared, &format!("{name}/blocks/{id}"))?;
            }
        }
    }
    Ok(())
}

/// Reads the log: heads that must still become blocks, and the keys of their requests. Returns the segment numbers, and the next free one.
pub(crate) fn read_log(
    shared: &Shared,
    folder: &Path,
    taken: &mut Taken,
) -> Result<(Vec<u64>, u64), StoreError> {
    let mut open = Vec::new();
    let blocks: Vec<_> =
        shared.tenants.all().iter().flat_map(|(_, state)| state.read().blocks.clone()).collect();
    let runs = blocks.iter().filter_map(|block| block.meta.segments.get(&shared.server)).flatten();
    let mut next = runs.map(|&(_, last)| last + 1).max().unwrap_or(1);
    let mut tombstones = shared.tombstones.lock().unwrap_or_else(PoisonError::into_inner);
    next = next.max(tombstones.next_segment());
    for (number, path) in wal::segments(folder)? {
        next = next.max(number + 1);
        let replay = wal::read(&path)?;
        replay.requests.into_iter().for_each(|request| taken.insert(request));
        shared.counters.recovered.fetch_add(replay.records as u64, Ordering::Relaxed);
        shared.counters.log_damaged.fetch_add(replay.damaged, Ordering::Relaxed);
        if replay.damaged > 0 {
            tracing::warn!(
                segment = %path.display(), bytes = replay.damaged, samples_without_series = replay.samples_without_series,
                "bytes of the write-ahead log belong to no whole record and were passed over"
            );
        }
        let heads = replay.heads.into_iter().filter(|(tenant, _)| !tombstones.is_deleted(tenant, number));
        for (name, batch) in heads {
            let Ok(tenant) = Tenant::new(&name) else { continue };
            let head = Head::of(batch);
            let state = shared.tenants.get_or_new(&tenant);
            let mut parts = state.write();
            let is_stored = parts.blocks.iter().any(|block| block.meta.has_segment(&shared.server, number));
            if !is_stored && !head.is_empty() {
                head.segment.store(number, Ordering::Relaxed);
                parts.frozen.push((number, Arc::new(head)));
            }
        }
        open.push(number);
    }
    tombstones.forget(open.first().copied().unwrap_or(next))?;
    Ok((open, next))
}
