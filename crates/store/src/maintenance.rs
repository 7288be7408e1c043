//! The thread that writes blocks, compacts them, and removes those that are too old or take too much space.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::batch::Millis;
use crate::block::{
    BatchSource, Block, BlockMeta, BlockSource, EncodedBlock, FileMeta, VERSION, encode, merged_segments,
};
use crate::cancellation::Cancellation;
use crate::clock::{Clock, now};
use crate::compaction;
use crate::deletion;
use crate::error::StoreError;
use crate::lease;
use crate::peers;
use crate::query::prepare;
use crate::quotas::TenantQuota;
use crate::recovery::{refresh, remove_replaced};
use crate::shared::Shared;
use crate::tenant::Tenant;
use crate::tenants::TenantState;
use crate::tombstones::Tombstone;

/// Time for which the files of a replaced block are kept for queries in progress.
const GRACE: Duration = Duration::from_secs(60);
/// Pause before a failed write is retried.
const AGAIN: Duration = Duration::from_secs(5);

/// Memory for the stacks of blocks that are merged, in percent of that for heads.
const MERGED: usize = 150;

/// A message to the thread.
pub(crate) enum Task {
    Write(Frozen),
    /// Answered when all earlier tasks are done.
    Tell(oneshot::Sender<()>),
    /// Compact now: all blocks that can be merged, or only those that are due.
    Compact {
        all: bool,
        done: oneshot::Sender<()>,
    },
    /// Remove the blocks of a tenant that was marked as deleted; answered when they are gone.
    Delete {
        tombstone: Tombstone,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    Close,
}

/// Heads of a log segment that become blocks.
pub(crate) struct Frozen {
    pub segment: u64,
}

/// State of the thread.
pub(crate) struct Maintenance {
    pub shared: Arc<Shared>,
    /// Directory of the log.
    pub log: PathBuf,
    waiting: Vec<Frozen>,
    /// Told after each attempt to write the blocks of a segment.
    written: SyncSender<()>,
    /// Directories to remove, and when.
    leaving: Vec<(Instant, Arc<str>)>,
    clock: Clock,
    /// Time of the last compaction and retention run.
    looked: Instant,
    /// Time of the last search for blocks of other servers.
    refreshed: Instant,
}

impl Maintenance {
    pub fn new(shared: Arc<Shared>, log: PathBuf, written: SyncSender<()>) -> Self {
        Self {
            shared,
            log,
            waiting: Vec::new(),
            written,
            leaving: Vec::new(),
            clock: Clock::new(),
            looked: Instant::now(),
            refreshed: Instant::now(),
        }
    }

    /// Runs until it receives [`Task::Close`].
    pub fn run(mut self, asked: &Receiver<Task>) {
        loop {
            let next = asked.recv_timeout(self.wait());
            self.write_all();
            match next {
                Ok(Task::Write(frozen)) => {
                    self.waiting.push(frozen);
                    self.write_all();
                }
                Ok(Task::Tell(done)) => {
                    let _ = done.send(());
                }
                Ok(Task::Compact { all, done }) => {
                    self.compact(all);
                    self.expire();
                    let _ = done.send(());
                }
                Ok(Task::Delete { tombstone, done }) => {
                    let _ = done.send(self.delete(&tombstone));
                }
                Ok(Task::Close) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look();
        }
    }

    /// Time to wait for the next task.
    fn wait(&self) -> Duration {
        if !self.waiting.is_empty() {
            return AGAIN;
        }
        let options = &self.shared.options;
        let wait = options.maintenance_interval.saturating_sub(self.looked.elapsed());
        let refresh = options.refresh_interval.saturating_sub(self.refreshed.elapsed());
        if self.shared.bucket.is_shared() { wait.min(refresh) } else { wait }
    }

    /// Does the work that is due.
    fn look(&mut self) {
        let options = &self.shared.options;
        let is_due = self.looked.elapsed() >= options.maintenance_interval;
        if self.shared.bucket.is_shared() && self.refreshed.elapsed() >= options.refresh_interval {
            self.refresh();
            self.refreshed = Instant::now();
        }
        if is_due {
            self.looked = Instant::now();
            self.compact(false);
            self.expire();
            self.remove_left(Instant::now());
        }
    }

    /// Writes the blocks of all waiting heads, oldest first, until one fails.
    fn write_all(&mut self) {
        while let Some(frozen) = self.waiting.first() {
            let written = self.write(frozen.segment);
            let failure = written.as_ref().err().map(ToString::to_string);
            *self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            // A message that has not been received yet says the same.
            let _ = self.written.try_send(());
            if let Err(error) = written {
                return tracing::error!(%error, "a block cannot be written; its samples stay in memory and in the log");
            }
            self.waiting.remove(0);
        }
    }

    /// Writes the blocks of all heads that are not written yet, also of those whose message has not been received.
    fn write_frozen(&mut self) {
        let states = self.shared.tenants.states();
        let frozen = states.iter().flat_map(|state| {
            let segments: Vec<u64> = state.read().frozen.iter().map(|&(segment, _)| segment).collect();
            segments
        });
        let is_new = |segment: &u64| self.waiting.iter().all(|waiting| waiting.segment != *segment);
        let new: BTreeSet<u64> = frozen.filter(is_new).collect();
        self.waiting.extend(new.into_iter().map(|segment| Frozen { segment }));
        self.write_all();
    }

    fn write(&self, segment: u64) -> Result<(), StoreError> {
        for (tenant, state) in self.shared.tenants.all() {
            let head =
                state.read().frozen.iter().find(|(of, _)| *of == segment).map(|(_, head)| head.clone());
            let Some(head) = head else { continue };
            let alone = self.shared.large_work.blocking_lock();
            let batch = head.read();
            let encoded = encode(&mut [&mut BatchSource::new(&batch)], 0, usize::MAX)?;
            drop(alone);
            let segments = BTreeMap::from([(self.shared.server.clone(), vec![(segment, segment)])]);
            match encoded {
                Some(encoded) => {
                    let block = Arc::new(self.commit(&tenant, encoded, 0, segments, Vec::new())?);
                    state.replace(block.clone(), Some(segment));
                    self.prepare(&tenant, &state, block);
                }
                None => state.write().frozen.retain(|&(of, _)| of != segment),
            }
        }
        let path = self.log.join(format!("{segment:012}.wal"));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StoreError::Io { path, action: "remove", source: error })
            }
            // Segments are written in their order: all earlier ones are gone.
            _ => self.shared.tombstones.lock().unwrap_or_else(PoisonError::into_inner).forget(segment + 1),
        }
    }

    /// Removes the blocks and symbols of a tenant that was marked as deleted.
    fn delete(&mut self, tombstone: &Tombstone) -> Result<(), StoreError> {
        let folder = format!("{}/", tombstone.tenant);
        self.leaving.retain(|(_, leaving)| !leaving.starts_with(&folder));
        deletion::remove(&self.shared, tombstone)?;
        tracing::info!(tenant = tombstone.tenant, "the data of a tenant was deleted");
        Ok(())
    }

    /// Prepares the calls of a new block's stacks ahead of its first query, if the tenant has had queries.
    fn prepare(&self, tenant: &Tenant, state: &TenantState, block: Arc<Block>) {
        let is_queried = state.calls.read().unwrap_or_else(PoisonError::into_inner).calls.len() > 0;
        if is_queried {
            let _alone = self.shared.large_work.blocking_lock();
            prepare(&self.shared, tenant, &state.calls, &[block], &Cancellation::default());
        }
    }

    /// Stores a block. The block exists once its last file does.
    fn commit(
        &self,
        tenant: &Tenant,
        encoded: EncodedBlock,
        level: u8,
        segments: BTreeMap<String, Vec<(u64, u64)>>,
        replaces: Vec<String>,
    ) -> Result<Block, StoreError> {
        let (from, until) = encoded.span;
        let id = format!("{:013}-{:013}-{level}-{:08x}", from.0, until.0, crate::clock::random() as u32);
        let folder: Arc<str> = format!("{tenant}/blocks/{id}").into();
        let mut files = BTreeMap::new();
        for (table, bytes) in &encoded.files {
            let meta = FileMeta { bytes: bytes.len() as u64, crc32c: crc32c::crc32c(bytes) };
            files.insert(table.file().to_owned(), meta);
            self.shared.bucket.put(&format!("{folder}/{}", table.file()), bytes.clone())?;
        }
        let meta = BlockMeta {
            version: VERSION,
            id,
            level,
            from_ms: from,
            until_ms: until,
            created_ms: now(),
            segments,
            replaces,
            counts: encoded.counts,
            files,
        };
        let json = serde_json::to_vec(&meta)
            .map_err(|error| StoreError::Damaged { path: folder.to_string(), message: error.to_string() })?;
        self.shared.bucket.put(&format!("{folder}/block.json"), Bytes::from(json))?;
        tracing::info!(
            block = &*folder,
            samples = meta.counts.samples,
            stacks = meta.counts.stacks,
            bytes = meta.bytes(),
            "a block was written"
        );
        Ok(Block::new(meta, folder))
    }

    fn refresh(&self) {
        if let Err(error) = refresh(&self.shared).and_then(|()| peers::refresh(&self.shared)) {
            tracing::warn!(%error, "the bucket cannot be listed; blocks that others wrote since are not seen");
        }
    }

    /// Whether this server is the one that compacts and removes blocks.
    fn leads(&self) -> bool {
        let held = lease::hold(&self.shared.bucket, &self.shared.server, now());
        held.unwrap_or_else(|error| {
            tracing::warn!(%error, "the lease for compaction cannot be taken");
            false
        })
    }

    /// Merges blocks: those that are due, or all that can be merged.
    fn compact(&mut self, all: bool) {
        if !self.leads() {
            return;
        }
        if self.shared.bucket.is_shared() {
            // Another server may already have compacted these blocks.
            self.refresh();
        }
        let quotas = self.shared.quotas.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (tenant, state) in self.shared.tenants.all() {
            let most = compaction::most_bytes(quotas.of(&tenant).max_bytes);
            loop {
                let blocks = state.read().blocks.clone();
                let Some(plan) = compaction::plan(&blocks, now(), all, most) else { break };
                // Pushes wait for these, and there may be many merges.
                self.write_frozen();
                match self.merge(&tenant, &state, &plan.blocks, plan.level) {
                    Ok(true) => self.shared.counters.compactions.fetch_add(1, Ordering::Relaxed),
                    Ok(false) => return,
                    Err(error) => {
                        tracing::error!(%error, "blocks cannot be compacted");
                        break;
                    }
                };
            }
        }
    }

    /// Merges blocks, unless another server does that now. Returns whether compaction may continue.
    fn merge(
        &mut self,
        tenant: &Tenant,
        state: &TenantState,
        blocks: &[Arc<Block>],
        level: u8,
    ) -> Result<bool, StoreError> {
        let shared = self.shared.clone();
        let alone = shared.large_work.blocking_lock();
        let mut contents = Vec::new();
        for block in blocks {
            match block.contents(&shared.bucket, &shared.cache) {
                Ok(one) => contents.push(one),
                // The block is left alone; the next plan excludes it.
                Err(error @ StoreError::Damaged { .. }) => {
                    shared.set_aside(block, &error);
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        let mut sources: Vec<&mut dyn BlockSource> =
            contents.iter_mut().map(|one| one as &mut dyn BlockSource).collect();
        let most_bytes = shared.options.head_bytes.saturating_mul(MERGED) / 100;
        let encoded = encode(&mut sources, level, most_bytes);
        drop(sources);
        drop(contents);
        // Storing it takes as long as the bucket does.
        drop(alone);
        let encoded = match encoded {
            Err(error @ StoreError::Damaged { .. }) => return set_aside_damaged(&shared, blocks, error),
            encoded => encoded?,
        };
        let Some(encoded) = encoded else { return Ok(false) };
        if encoded.sources == 1 && blocks.len() > 1 && blocks[0].meta.level == level {
            blocks[0].is_full.store(true, Ordering::Relaxed);
            return Ok(true);
        }
        let blocks = &blocks[..encoded.sources];
        if !self.leads() {
            return Ok(false);
        }
        let ids: Vec<String> = blocks.iter().map(|block| block.meta.id.clone()).collect();
        let segments = merged_segments(blocks.iter().map(|block| &block.meta));
        let block = self.commit(tenant, encoded, level, segments, ids)?;
        let block = Arc::new(block);
        state.replace(block.clone(), None);
        self.prepare(tenant, state, block);
        if !self.shared.bucket.is_shared() {
            let when = Instant::now() + GRACE;
            self.leaving.extend(blocks.iter().map(|block| (when, block.folder.clone())));
        }
        Ok(true)
    }

    /// Removes blocks that are too old, and the oldest ones if those of a tenant, or all together, take too much space.
    fn expire(&mut self) {
        if !self.leads() {
            return;
        }
        let options = &self.shared.options;
        let of_store = TenantQuota { retention: Some(options.retention), max_bytes: Some(options.max_bytes) };
        let now = self.clock.trusted_now();
        let quotas = self.shared.quotas.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut all, mut expired) = (Vec::new(), Vec::new());
        for (tenant, state) in self.shared.tenants.all() {
            let blocks = state.read().blocks.iter().map(|block| (state.clone(), block.clone())).collect();
            let (kept, gone) = split_expired(blocks, quotas.of(&tenant), now);
            all.extend(kept);
            expired.extend(gone);
        }
        expired.extend(split_expired(all, of_store, now).1);
        for (state, block) in expired {
            state.forget(std::slice::from_ref(&block.meta.id));
            self.leaving.push((Instant::now() + GRACE, block.folder.clone()));
            self.shared.counters.expired_blocks.fetch_add(1, Ordering::Relaxed);
            tracing::info!(block = &*block.folder, "a block is removed by retention");
        }
    }

    /// Removes the directories that are due.
    fn remove_left(&mut self, now: Instant) {
        let shared = self.shared.clone();
        if shared.bucket.is_shared() && self.leads() {
            let grace = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
            if let Err(error) = remove_replaced(&shared, grace) {
                tracing::warn!(%error, "blocks that were merged stay");
            }
        }
        self.leaving.retain(|(when, folder)| {
            *when > now
                || remove(&shared, folder)
                    .inspect_err(|error| tracing::warn!(%error, "a block stays"))
                    .is_err()
        });
    }
}

/// A block with the state of its tenant.
type OwnedBlock = (Arc<TenantState>, Arc<Block>);

/// Splits blocks into those to keep and those that are too old or, as the oldest, exceed the size. Without a trusted time, none is too old.
fn split_expired(
    mut blocks: Vec<OwnedBlock>,
    quota: TenantQuota,
    now: Option<Millis>,
) -> (Vec<OwnedBlock>, Vec<OwnedBlock>) {
    let age = |limit: Duration| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    let oldest = now.zip(quota.retention).map(|(now, limit)| Millis(now.0.saturating_sub(age(limit))));
    let most = quota.max_bytes.unwrap_or(u64::MAX);
    blocks.sort_by_key(|(_, block)| std::cmp::Reverse(block.meta.until_ms));
    let mut bytes: u64 = 0;
    blocks.into_iter().partition(|(_, block)| {
        bytes = bytes.saturating_add(block.meta.bytes());
        bytes <= most && oldest.is_none_or(|oldest| block.meta.until_ms >= oldest)
    })
}

/// Excludes the block that has a damaged file, so that the next plan leaves it out.
fn set_aside_damaged(shared: &Shared, blocks: &[Arc<Block>], error: StoreError) -> Result<bool, StoreError> {
    let StoreError::Damaged { path, .. } = &error else { return Err(error) };
    let Some(block) = blocks.iter().find(|block| path.starts_with(&*block.folder)) else { return Err(error) };
    shared.set_aside(block, &error);
    Ok(true)
}

/// Removes a block's files, starting with `block.json`, without which it does not count as a block.
pub(crate) fn remove(shared: &Shared, folder: &str) -> Result<(), StoreError> {
    shared.bucket.delete(&format!("{folder}/block.json"))?;
    for (path, _) in shared.bucket.list(folder)? {
        shared.bucket.delete(&path)?;
    }
    shared.bucket.remove_folder(folder);
    Ok(())
}
