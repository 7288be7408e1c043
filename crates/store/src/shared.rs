//! State shared by the threads of a store.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock};

use crate::block::{Block, BlockCache};
use crate::bucket::Bucket;
use crate::options::StoreOptions;
use crate::peers::Peer;
use crate::quotas::TenantQuotas;
use crate::symbols::SymbolFiles;
use crate::tenants::Tenants;
use crate::tombstones::Tombstones;

/// State shared by the threads of a store.
pub(crate) struct Shared {
    pub options: StoreOptions,
    pub bucket: Bucket,
    pub cache: BlockCache,
    pub tenants: Tenants,
    /// Limits of tenants.
    pub quotas: RwLock<TenantQuotas>,
    /// Deletions of tenants.
    pub tombstones: Mutex<Tombstones>,
    /// Name of this server in blocks.
    pub server: String,
    pub counters: Counters,
    /// Files with symbols for nameless frames.
    pub symbols: SymbolFiles,
    /// Names and addresses of the bucket's other servers.
    pub peers: Mutex<Vec<Peer>>,
    /// Directories of blocks that cannot be opened and have been reported.
    pub reported: Mutex<HashSet<String>>,
    /// Reason why the log cannot be written, if so.
    pub log_failure: Mutex<Option<String>>,
    /// Reason why blocks cannot be written, if so.
    pub failure: Mutex<Option<String>>,
    /// Held by work that takes much memory for a short time.
    pub large_work: Arc<tokio::sync::Mutex<()>>,
}

/// Event counts since the store was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub batches: AtomicU64,
    pub samples: AtomicU64,
    /// Requests that were already stored.
    pub repeated: AtomicU64,
    /// Bytes of the log's current segment.
    pub log_bytes: AtomicU64,
    /// Bytes of the log that belonged to no complete record when it was read.
    pub log_damaged: AtomicU64,
    /// Batches recovered from the log.
    pub recovered: AtomicU64,
    pub damaged_blocks: AtomicU64,
    pub compactions: AtomicU64,
    pub expired_blocks: AtomicU64,
}

impl Shared {
    /// Excludes a damaged block from all further answers, and reports it.
    pub fn set_aside(&self, block: &Arc<Block>, error: &crate::error::StoreError) {
        if !block.set_aside.swap(true, std::sync::atomic::Ordering::Relaxed) {
            self.counters.damaged_blocks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tracing::error!(block = &*block.folder, %error, "a block is damaged and left out of all answers");
        }
    }
}
