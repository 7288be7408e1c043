//! Status of a store: its contents, and counts of events.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::shared::Shared;

/// Contents of a store, and counts of events since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Contents by tenant name.
    pub tenants: Vec<(String, TenantStatus)>,
    /// Batches appended.
    pub batches: u64,
    /// Samples in these batches.
    pub samples: u64,
    /// Batches ignored because their request was already stored.
    pub repeated: u64,
    /// Bytes of the write-ahead log's current segment.
    pub log_bytes: u64,
    /// Bytes of the log that belonged to no complete record when the store was opened.
    pub log_damaged: u64,
    /// Batches recovered from the log at that time.
    pub recovered: u64,
    /// Blocks excluded from all answers because they are damaged.
    pub damaged_blocks: u64,
    /// Merges of blocks.
    pub compactions: u64,
    /// Blocks removed by retention.
    pub expired_blocks: u64,
    /// Reason why the log or blocks cannot be written, if so.
    pub failure: Option<String>,
}

/// Contents of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantStatus {
    /// Number of blocks.
    pub blocks: u64,
    /// Size of the blocks in bytes.
    pub block_bytes: u64,
    /// Samples that are in no block yet.
    pub head_samples: u64,
}

impl StoreStatus {
    pub(crate) fn of(shared: &Shared) -> Self {
        let counters = &shared.counters;
        let tenants = shared.tenants.all().into_iter().map(|(name, state)| {
            let parts = state.read();
            let heads = parts.frozen.iter().map(|(_, head)| head).chain([&parts.head]);
            let status = TenantStatus {
                blocks: parts.blocks.len() as u64,
                block_bytes: parts.blocks.iter().map(|block| block.meta.bytes()).sum(),
                head_samples: heads.map(|head| head.read().samples().len() as u64).sum(),
            };
            (name.to_string(), status)
        });
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            tenants: tenants.collect(),
            batches: read(&counters.batches),
            samples: read(&counters.samples),
            repeated: read(&counters.repeated),
            log_bytes: read(&counters.log_bytes),
            log_damaged: read(&counters.log_damaged),
            recovered: read(&counters.recovered),
            damaged_blocks: read(&counters.damaged_blocks),
            compactions: read(&counters.compactions),
            expired_blocks: read(&counters.expired_blocks),
            failure: [&shared.log_failure, &shared.failure]
                .into_iter()
                .find_map(|failure| failure.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }
}
