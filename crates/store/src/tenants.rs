//! Data of each tenant: the head that is appended to, heads that become blocks, and blocks.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::block::Block;
use crate::calls::SharedCalls;
use crate::head::Head;
use crate::tenant::Tenant;

/// Data of a tenant.
#[derive(Default)]
pub(crate) struct TenantState {
    parts: RwLock<Parts>,
    /// Calls that its queries share.
    pub calls: Arc<RwLock<SharedCalls>>,
}

/// Parts of a tenant's data. Each sample is in exactly one of them.
#[derive(Default)]
pub(crate) struct Parts {
    pub head: Arc<Head>,
    /// Heads that become blocks, with their log segments.
    pub frozen: Vec<(u64, Arc<Head>)>,
    pub blocks: Vec<Arc<Block>>,
}

impl TenantState {
    pub fn read(&self) -> RwLockReadGuard<'_, Parts> {
        self.parts.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Parts> {
        self.parts.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes queries look up all names again.
    pub fn forget_calls(&self) {
        let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
        *calls = SharedCalls { generation: calls.generation + 1, ..SharedCalls::default() };
    }

    /// Replaces a head, or the blocks that were merged, with a block. A refresh from the bucket may already have found this block.
    pub fn replace(&self, block: Arc<Block>, segment: Option<u64>) {
        let mut parts = self.write();
        parts.frozen.retain(|&(of, _)| Some(of) != segment);
        let id = &block.meta.id;
        parts.blocks.retain(|old| old.meta.id != *id && !block.meta.replaces.contains(&old.meta.id));
        parts.blocks.push(block);
    }

    /// Replaces the previously known blocks with those that were found; blocks added in the meantime stay. Removes heads of this server whose block
    /// is among them, because the thread that wrote it may not have done so yet.
    pub fn exchange(&self, server: &str, known: &HashSet<String>, found: Vec<Arc<Block>>) {
        let mut parts = self.write();
        let is_stored = |segment| found.iter().any(|block| block.meta.has_segment(server, segment));
        parts.frozen.retain(|&(segment, _)| !is_stored(segment));
        let replaced: HashSet<String> = found.iter().flat_map(|block| block.meta.replaces.clone()).collect();
        let ids: HashSet<String> = found.iter().map(|block| block.meta.id.clone()).collect();
        parts.blocks.retain(|block| {
            let id = &block.meta.id;
            !known.contains(id) && !replaced.contains(id) && !ids.contains(id)
        });
        parts.blocks.extend(found);
    }

    /// Removes blocks.
    pub fn forget(&self, ids: &[String]) {
        self.write().blocks.retain(|block| !ids.contains(&block.meta.id));
    }
}

/// All tenants.
#[derive(Default)]
pub(crate) struct Tenants(RwLock<HashMap<Tenant, Arc<TenantState>>>);

impl Tenants {
    /// The state of a tenant that has or had data.
    pub fn get(&self, tenant: &Tenant) -> Option<Arc<TenantState>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned()
    }

    /// The state of a tenant, created if needed.
    pub fn get_or_new(&self, tenant: &Tenant) -> Arc<TenantState> {
        if let Some(state) = self.get(tenant) {
            return state;
        }
        self.0.write().unwrap_or_else(PoisonError::into_inner).entry(tenant.clone()).or_default().clone()
    }

    /// Removes the state of a tenant. Queries in progress keep it.
    pub fn remove(&self, tenant: &Tenant) -> Option<Arc<TenantState>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(tenant)
    }

    /// States of all tenants, in any order.
    pub fn states(&self) -> Vec<Arc<TenantState>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// All tenants with their states, sorted by name.
    pub fn all(&self) -> Vec<(Tenant, Arc<TenantState>)> {
        let tenants = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = tenants.iter().map(|(name, state)| (name.clone(), state.clone())).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockMeta;

    fn block(meta: BlockMeta) -> Arc<Block> {
        Arc::new(Block::new(meta, "".into()))
    }

    fn ids(state: &TenantState) -> Vec<String> {
        state.read().blocks.iter().map(|block| block.meta.id.clone()).collect()
    }

    #[test]
    fn a_block_that_is_found_before_its_writer_is_done_counts_once() {
        let state = TenantState::default();
        state.write().frozen.push((7, Arc::default()));
        let meta = BlockMeta { segments: [("me".to_owned(), vec![(7, 7)])].into(), ..BlockMeta::named("a") };
        state.exchange("me", &HashSet::new(), vec![block(meta.clone())]);
        assert_eq!((state.read().frozen.len(), ids(&state)), (0, vec!["a".to_owned()]));
        state.replace(block(meta), Some(7));
        assert_eq!(ids(&state), ["a"]);
        // Another server's segment of the same number is unrelated.
        state.write().frozen.push((7, Arc::default()));
        state.exchange("other", &HashSet::new(), vec![block(BlockMeta::named("b"))]);
        assert_eq!((state.read().frozen.len(), ids(&state)), (1, vec!["a".to_owned(), "b".to_owned()]));
    }
}
