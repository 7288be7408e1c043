//! What the threads of a store share.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use crate::block::{Block, BlockCache};
use crate::bucket::Bucket;
use crate::options::StoreOptions;
use crate::peers::Peer;
use crate::symbols::SymbolFiles;
use crate::tenants::Tenants;

/// What the threads of a store share.
pub(crate) struct Shared {
    pub options: StoreOptions,
    pub bucket: Bucket,
    pub cache: BlockCache,
    pub tenants: Tenants,
    /// This server's name in blocks.
    pub server: String,
    pub counters: Counters,
    /// Files with names for frames that came without.
    pub symbols: SymbolFiles,
    /// Other servers of the bucket: names and addresses.
    pub peers: Mutex<Vec<Peer>>,
    /// Folders of blocks that can't be opened, which was said.
    pub reported: Mutex<HashSet<String>>,
    /// Why the log can't be written, if it can't.
    pub log_failure: Mutex<Option<String>>,
    /// Why blocks can't be written, if they can't.
    pub failure: Mutex<Option<String>>,
}

/// What happened since the store was opened.
#[derive(Default)]
pub(crate) struct Counters {
    pub batches: AtomicU64,
    pub samples: AtomicU64,
    /// Requests that were stored already.
    pub repeated: AtomicU64,
    /// Bytes of the log's current segment.
    pub log_bytes: AtomicU64,
    /// Bytes of the log that were no whole record when it was read.
    pub log_damaged: AtomicU64,
    /// Batches that were read back from the log.
    pub recovered: AtomicU64,
    pub damaged_blocks: AtomicU64,
    pub compactions: AtomicU64,
    pub expired_blocks: AtomicU64,
}

impl Shared {
    /// Leaves a block out of all further answers, and says so.
    pub fn set_aside(&self, block: &Arc<Block>, error: &crate::error::StoreError) {
        if !block.set_aside.swap(true, std::sync::atomic::Ordering::Relaxed) {
            self.counters.damaged_blocks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tracing::error!(block = &*block.folder, %error, "a block is damaged and left out of all answers");
        }
    }
}
