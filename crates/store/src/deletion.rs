//! Removes the stored data of deleted tenants: blocks and symbols.
//!
//! Elsewhere: the order of a deletion ([`crate::appender`] begins it), and which records of the log are deleted ([`crate::tombstones`]).

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::block::BlockMeta;
use crate::error::StoreError;
use crate::shared::Shared;
use crate::tenant::Tenant;
use crate::tenants::TenantState;
use crate::tombstones::Tombstone;

/// Finishes the deletions that an earlier server began. Call it before any block is opened.
pub(crate) fn finish(shared: &Shared) -> Result<(), StoreError> {
    let unfinished = shared.tombstones.lock().unwrap_or_else(PoisonError::into_inner).unfinished();
    unfinished.iter().try_for_each(|one| remove(shared, one))
}

/// Keeps queries in progress from reporting the blocks of a deleted tenant as damaged.
pub(crate) fn set_aside_blocks(state: &TenantState) {
    state.read().blocks.iter().for_each(|block| block.set_aside.store(true, Ordering::Relaxed));
}

/// Removes the blocks and symbols of a tombstone's tenant, and notes that. Blocks that were written after the deletion stay.
pub(crate) fn remove(shared: &Shared, tombstone: &Tombstone) -> Result<(), StoreError> {
    let Ok(tenant) = Tenant::new(&tombstone.tenant) else { return Ok(()) };
    let blocks = format!("{tenant}/blocks");
    for id in shared.bucket.folders(&blocks)? {
        let folder = format!("{blocks}/{id}");
        if !is_later(shared, &folder, tombstone.first_segment)? {
            shared.bucket.remove_tree(&folder)?;
        }
    }
    shared.symbols.remove_all(&shared.bucket, &tenant)?;
    shared.bucket.remove_folder(&blocks);
    shared.bucket.remove_folder(tenant.as_str());
    shared.tombstones.lock().unwrap_or_else(PoisonError::into_inner).removed(tombstone)
}

/// Whether a block has samples of this segment of the server's log, or of a later one.
fn is_later(shared: &Shared, folder: &str, first_segment: u64) -> Result<bool, StoreError> {
    let Some((json, _)) = shared.bucket.find(&format!("{folder}/block.json"))? else { return Ok(false) };
    let Ok(meta) = serde_json::from_slice::<BlockMeta>(&json) else { return Ok(false) };
    let runs = meta.segments.get(&shared.server);
    Ok(runs.is_some_and(|runs| runs.iter().any(|&(_, last)| last >= first_segment)))
}
