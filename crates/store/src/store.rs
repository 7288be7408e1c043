//! The store's public interface.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use quick_cache::OptionsBuilder;
use quick_cache::sync::{Cache, DefaultLifecycle};
use tokio::sync::{Semaphore, oneshot};

use crate::appender::{Append, Appender, PendingBatch};
use crate::batch::Batch;
use crate::batch::Millis;
use crate::block::BlockMeta;
use crate::bucket::Bucket;
use crate::cancellation::Cancellation;
use crate::deletion;
use crate::error::StoreError;
use crate::maintenance::{Frozen, Maintenance, Task};
use crate::options::StoreOptions;
use crate::peers::{self, Peer};
use crate::query::{Selected, Selection, Thinning};
use crate::quotas::TenantQuotas;
use crate::recovery::{read_log, refresh, refresh_blocks};
use crate::shared::{Counters, Shared};
use crate::status::StoreStatus;
use crate::symbols::SymbolSource;
use crate::taken::Taken;
use crate::tenant::Tenant;
use crate::tombstones::Tombstones;
use crate::unwritten::Unwritten;
use crate::wal::Segment;

/// Most KiB of batches waiting to be written.
const MOST_WAITING: u32 = 64 << 10;

/// A store of profiles.
pub struct Store {
    shared: Arc<Shared>,
    appends: Sender<Append>,
    tasks: Sender<Task>,
    waiting: Semaphore,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Locked while the store is open.
    _lock: File,
}

fn io<'p>(path: &'p Path, action: &'static str) -> impl FnOnce(std::io::Error) -> StoreError + 'p {
    move |source| StoreError::Io { path: path.into(), action, source }
}

impl Store {
    /// Opens or creates a store. Recovers the data that a crash left in the log.
    pub fn open(options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_with(options, |options, blocks| match &options.bucket {
            Some(url) => Bucket::s3(url),
            None => Bucket::directory(blocks),
        })
    }

    fn open_with(
        options: StoreOptions,
        bucket: impl FnOnce(&StoreOptions, &Path) -> Result<Bucket, StoreError>,
    ) -> Result<Self, StoreError> {
        let directory = options.directory.clone();
        let (log, blocks) = (directory.join("log"), directory.join("blocks"));
        let folders =
            if options.bucket.is_some() { vec![&directory, &log] } else { vec![&directory, &log, &blocks] };
        for folder in folders {
            std::fs::create_dir_all(folder).map_err(io(folder, "create"))?;
        }
        let lock = lock(&directory)?;
        recreate_empty(&temporary_directory(&directory))?;
        let bucket = bucket(&options, &blocks)?;
        let shared = Arc::new(Shared {
            cache: cache(options.cache_bytes),
            options,
            bucket,
            tenants: Default::default(),
            quotas: Default::default(),
            tombstones: Mutex::new(Tombstones::open(&log)?),
            server: server_name(&directory)?,
            counters: Counters::default(),
            symbols: Default::default(),
            peers: Mutex::default(),
            reported: Mutex::default(),
            log_failure: Mutex::default(),
            failure: Mutex::default(),
            large_work: Arc::default(),
        });
        deletion::finish(&shared)?;
        refresh(&shared)?;
        peers::refresh(&shared)?;
        let mut taken = Taken::open(&log);
        let (open, next) = read_log(&shared, &log, &mut taken)?;
        taken.save();
        let segment = Segment::create(&log, next)?;
        let (tasks, task_receiver) = channel();
        for segment in open {
            let _ = tasks.send(Task::Write(Frozen { segment }));
        }
        let (appends, append_receiver) = channel();
        let (written, written_receiver) = sync_channel(1);
        let appender = Appender {
            shared: shared.clone(),
            folder: log.clone(),
            segment,
            taken,
            tasks: tasks.clone(),
            written: written_receiver,
            since: Instant::now(),
        };
        let maintenance = Maintenance::new(shared.clone(), log, written);
        let threads = vec![
            start("store-append", move || appender.run(&append_receiver))?,
            start("store-blocks", move || maintenance.run(&task_receiver))?,
        ];
        let waiting = Semaphore::new(MOST_WAITING as usize);
        Ok(Self { shared, appends, tasks, waiting, threads: Mutex::new(threads), _lock: lock })
    }

    /// Stores a batch. When this returns, the batch survives a crash or a power loss. A batch whose request was stored within the last hour is not
    /// stored again.
    pub async fn append(&self, tenant: &Tenant, batch: Batch) -> Result<(), StoreError> {
        if batch.samples().is_empty() {
            return Ok(());
        }
        self.shared.symbols.want(tenant, &batch.dictionary);
        let size = u32::try_from(batch.memory() >> 10).unwrap_or(u32::MAX).saturating_add(1);
        let _waiting =
            self.waiting.acquire_many(size.min(MOST_WAITING)).await.map_err(|_| StoreError::Closed)?;
        let (done, stored) = oneshot::channel();
        let pending = PendingBatch { tenant: tenant.clone(), batch, done };
        self.appends.send(Append::Batch(Box::new(pending))).map_err(|_| StoreError::Closed)?;
        stored.await.map_err(|_| StoreError::Closed)?
    }

    /// Held by work that takes much memory for a short time, so that such work is done one at a time: the writing and the merging of blocks, and
    /// whatever else the store's user does of this kind. Must not be held while appending.
    pub fn large_work(&self) -> Arc<tokio::sync::Mutex<()>> {
        self.shared.large_work.clone()
    }

    /// Takes a snapshot of a tenant's data for a selection. Blocks the thread, as do all queries on the result.
    pub fn select(&self, tenant: &Tenant, selection: Selection) -> Result<Selected, StoreError> {
        let state = self.shared.tenants.get(tenant).unwrap_or_default();
        let parts = state.read();
        let overlaps = |from, until| from <= selection.until && until >= selection.from;
        let heads = parts.frozen.iter().map(|(_, head)| head).chain([&parts.head]);
        let heads = heads.filter(|head| head.span().is_some_and(|(from, until)| overlaps(from, until)));
        let is_in = |meta: &BlockMeta| overlaps(meta.from_ms, meta.until_ms);
        let blocks = parts.blocks.iter().filter(|block| is_in(&block.meta));
        let blocks = blocks.filter(|block| !block.set_aside.load(Ordering::Relaxed));
        Ok(Selected {
            heads: heads.cloned().collect(),
            blocks: blocks.cloned().collect(),
            calls: state.calls.clone(),
            shared: self.shared.clone(),
            tenant: tenant.clone(),
            selection,
            thinning: Thinning::default(),
            cancellation: Cancellation::default(),
        })
    }

    /// First and last timestamp of each of a tenant's blocks that are left out of all answers because they are damaged, the oldest first.
    pub fn missing(&self, tenant: &Tenant) -> Vec<(Millis, Millis)> {
        let state = self.shared.tenants.get(tenant).unwrap_or_default();
        let parts = state.read();
        let missing = parts.blocks.iter().filter(|block| block.set_aside.load(Ordering::Relaxed));
        let mut spans: Vec<_> = missing.map(|block| (block.meta.from_ms, block.meta.until_ms)).collect();
        spans.sort();
        spans
    }

    /// A directory for temporary files. Files left by a killed server are removed when the next one starts.
    pub fn temporary_directory(&self) -> PathBuf {
        temporary_directory(&self.shared.options.directory)
    }

    /// Sets the reader of files with symbols.
    pub fn set_symbol_source(&self, source: Arc<dyn SymbolSource>) {
        self.shared.symbols.set_source(source);
    }

    /// Whether a tenant has the symbols of a file.
    pub fn has_symbols(&self, tenant: &Tenant, build_id: &str) -> bool {
        self.shared.symbols.has(tenant, build_id)
    }

    /// Build ids of files that a tenant's profiles, since the server started, needed symbols of, and that the tenant does not have.
    pub fn missing_symbols(&self, tenant: &Tenant) -> Vec<String> {
        self.shared.symbols.missing(tenant)
    }

    /// Stores the symbols of a file: an ELF file with that build id. Nameless frames are symbolized with it from now on.
    /// Returns whether they were stored: those that name more stay.
    pub fn put_symbols(&self, tenant: &Tenant, build_id: &str, elf: &Path) -> Result<bool, StoreError> {
        let shared = &self.shared;
        let quota = shared.options.symbol_bytes;
        let is_stored = shared.symbols.put(&shared.bucket, (tenant, build_id), elf, quota)?;
        if is_stored {
            shared.tenants.get_or_new(tenant).forget_calls();
        }
        Ok(is_stored)
    }

    /// The bucket's other servers that publish their addresses.
    pub fn peers(&self) -> Vec<Peer> {
        self.shared.peers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A tenant's selected data that is in no block yet, for another server's [`Store::select_among`].
    pub fn unwritten(
        &self,
        tenant: &Tenant,
        selection: Selection,
        cancellation: Cancellation,
    ) -> Result<Vec<u8>, StoreError> {
        let selected = self.select(tenant, selection)?.with_cancellation(cancellation);
        Ok(Unwritten::of(&Selected { blocks: Vec::new(), ..selected })?.encode())
    }

    /// Like [`Store::select`], but includes the data of other servers that is in no block yet. Request that data before calling this.
    pub fn select_among(
        &self,
        tenant: &Tenant,
        selection: Selection,
        unwritten: &[bytes::Bytes],
    ) -> Result<Selected, StoreError> {
        // Finds data that became a block after the other server answered.
        if self.shared.bucket.is_shared() {
            refresh_blocks(&self.shared, tenant)?;
        }
        let mut selected = self.select(tenant, selection)?;
        let blocks =
            self.shared.tenants.get(tenant).map(|state| state.read().blocks.clone()).unwrap_or_default();
        for bytes in unwritten {
            let is_stored =
                |server: &str, segment| blocks.iter().any(|block| block.meta.has_segment(server, segment));
            let heads = Unwritten::decode(bytes)?.heads(is_stored);
            selected.heads.extend(heads.into_iter().map(Arc::new));
        }
        Ok(selected)
    }

    /// Contents of the store, and counts of events.
    pub fn status(&self) -> StoreStatus {
        StoreStatus::of(&self.shared)
    }

    /// Sets the limits of tenants; they apply from the next maintenance run on.
    pub fn set_quotas(&self, quotas: TenantQuotas) {
        *self.shared.quotas.write().unwrap_or_else(PoisonError::into_inner) = quotas;
    }

    /// Deletes all data of a tenant: profiles, stored or in memory, and symbols. When this returns, nothing of it is answered any more, and a crash
    /// or a power loss brings nothing back. Profiles that are appended afterwards are kept.
    ///
    /// # Errors
    /// Other servers may share the bucket ([`StoreError::SharedTenant`]), or a file cannot be written or removed. In the latter case call it again;
    /// the next start of the server removes it, too.
    pub async fn delete_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        if self.shared.bucket.is_shared() {
            return Err(StoreError::SharedTenant(tenant.clone()));
        }
        let (done, deleted) = oneshot::channel();
        self.appends.send(Append::Delete { tenant: tenant.clone(), done }).map_err(|_| StoreError::Closed)?;
        deleted.await.map_err(|_| StoreError::Closed)?
    }

    /// Writes all data so far as blocks, and waits for that.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let (done, flushed) = oneshot::channel();
        self.appends.send(Append::Rotate(done)).map_err(|_| StoreError::Closed)?;
        flushed.await.map_err(|_| StoreError::Closed)
    }

    /// Searches for blocks of other servers, if the blocks are in a bucket. Blocks the thread.
    pub fn refresh(&self) -> Result<(), StoreError> {
        if !self.shared.bucket.is_shared() {
            return Ok(());
        }
        refresh(&self.shared)?;
        peers::refresh(&self.shared)
    }

    /// Compacts all blocks that can be merged, and waits for that.
    pub async fn compact(&self) -> Result<(), StoreError> {
        self.compact_blocks(true).await
    }

    /// Compacts the blocks that are due, as the maintenance thread does periodically, and waits for that.
    pub async fn compact_due(&self) -> Result<(), StoreError> {
        self.compact_blocks(false).await
    }

    async fn compact_blocks(&self, all: bool) -> Result<(), StoreError> {
        let (done, compacted) = oneshot::channel();
        self.tasks.send(Task::Compact { all, done }).map_err(|_| StoreError::Closed)?;
        compacted.await.map_err(|_| StoreError::Closed)
    }
}

/// Writes all data as blocks. Data that cannot be written is in the log.
impl Drop for Store {
    fn drop(&mut self) {
        let threads = std::mem::take(self.threads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let _ = self.appends.send(Append::Close);
        for (place, thread) in threads.into_iter().enumerate() {
            // The first thread sends its last head to the second before it ends.
            let _ = thread.join();
            if place == 0 {
                let _ = self.tasks.send(Task::Close);
            }
        }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map_err(|source| StoreError::Io { path: name.into(), action: "start thread", source })
}

fn cache(bytes: u64) -> crate::block::BlockCache {
    let options = OptionsBuilder::new().estimated_items_capacity(10_000).weight_capacity(bytes).build();
    match options {
        Ok(options) => Cache::with_options(
            options,
            crate::block::ByBytes,
            Default::default(),
            DefaultLifecycle::default(),
        ),
        Err(_) => Cache::with_weighter(10_000, bytes, crate::block::ByBytes),
    }
}

fn temporary_directory(directory: &Path) -> PathBuf {
    directory.join("tmp")
}

/// Creates an empty directory, or empties it.
fn recreate_empty(folder: &Path) -> Result<(), StoreError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => std::fs::create_dir(folder),
    }
    .map_err(io(folder, "empty"))
}

/// Locks a directory against other servers.
fn lock(directory: &Path) -> Result<File, StoreError> {
    let path = directory.join("lock");
    let file = File::options().create(true).append(true).open(&path).map_err(io(&path, "open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked(directory.into())),
        Err(TryLockError::Error(source)) => Err(io(&path, "lock")(source)),
    }
}

/// Name of the server that owns this log, generated once.
fn server_name(directory: &Path) -> Result<String, StoreError> {
    let path = directory.join("server");
    match std::fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(io(&path, "read")(error)),
    }
    let name = format!("{:016x}", crate::clock::random());
    std::fs::write(&path, &name).and_then(|()| File::open(&path)?.sync_all()).map_err(io(&path, "write"))?;
    Ok(name)
}

#[cfg(test)]
mod cancelled;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod deleted;
#[cfg(test)]
mod quotas;
#[cfg(test)]
mod support;
