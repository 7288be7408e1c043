//! The thread that appends: adds batches to heads and to the log, then notifies their senders.
//!
//! Batches that wait are written together with a single flush to disk. Only this thread writes the log's last segment and changes heads, so a segment
//! and the heads of its period hold the same samples.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::deletion;
use crate::error::StoreError;
use crate::head::{Head, Mark};
use crate::maintenance::{Frozen, Task};
use crate::shared::Shared;
use crate::taken::Taken;
use crate::tenant::Tenant;
use crate::tombstones::Tombstone;
use crate::wal::Segment;

/// Memory of batches per flush to disk, in bytes, beyond which no further one joins.
const MOST_TOGETHER: usize = 16 << 20;
/// Most segments whose blocks are not written yet; beyond that, batches are refused.
const MOST_FROZEN: usize = 8;
/// Longest time that batches wait for blocks to be written, if heads take too much memory.
const MOST_WAIT: Duration = Duration::from_secs(30);

/// A message to the thread.
pub(crate) enum Append {
    Batch(Box<PendingBatch>),
    /// Turn the current head into blocks; answered when they are written.
    Rotate(oneshot::Sender<()>),
    /// Delete the data of a tenant; answered when it is gone.
    Delete {
        tenant: Tenant,
        done: oneshot::Sender<Result<(), StoreError>>,
    },
    Close,
}

/// A batch waiting to be written.
pub(crate) struct PendingBatch {
    pub tenant: Tenant,
    pub batch: Batch,
    pub done: oneshot::Sender<Result<(), StoreError>>,
}

/// State of the thread.
pub(crate) struct Appender {
    pub shared: Arc<Shared>,
    pub folder: PathBuf,
    pub segment: Segment,
    /// Keys of recent requests, to detect repeated ones.
    pub taken: Taken,
    pub tasks: Sender<Task>,
    /// Receives a message after the blocks of a segment were written, or could not be.
    pub written: Receiver<()>,
    /// Start of the current head.
    pub since: Instant,
}

impl Appender {
    /// Runs until it receives [`Append::Close`].
    pub fn run(mut self, asked: &Receiver<Append>) {
        loop {
            let left = self.shared.options.block_interval.saturating_sub(self.since.elapsed());
            let mut waiting = Vec::new();
            let mut next = match asked.recv_timeout(left) {
                Ok(append) => Some(append),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let mut memory = 0;
            while let Some(Append::Batch(batch)) = next {
                memory += batch.batch.memory();
                waiting.push(*batch);
                let is_enough = memory >= MOST_TOGETHER.min(self.shared.options.head_bytes / 2);
                next = if is_enough { None } else { asked.try_recv().ok() };
            }
            self.append(waiting);
            match next {
                Some(Append::Rotate(done)) => self.rotate(Some(done)),
                Some(Append::Delete { tenant, done }) => self.delete(tenant, done),
                Some(Append::Close) => return self.rotate(None),
                _ if self.is_due() => self.rotate(None),
                _ => {}
            }
        }
    }

    fn is_due(&self) -> bool {
        let options = &self.shared.options;
        self.since.elapsed() >= options.block_interval || self.head_memory() >= options.head_bytes
    }

    /// Memory of the current heads of all tenants, in bytes.
    fn head_memory(&self) -> usize {
        self.shared.tenants.states().iter().map(|state| state.read().head.read().memory()).sum()
    }

    /// Waits until there is room for batches of this size, and for their segment.
    ///
    /// # Errors
    /// Why there is none: blocks cannot be written, or too slowly.
    fn make_room(&mut self, bytes: usize) -> Result<(), String> {
        let most = self.shared.options.head_bytes;
        let memory = self.head_memory();
        if memory > 0 && memory.saturating_add(bytes) > most {
            self.rotate(None);
        }
        let begin = Instant::now();
        loop {
            let (segments, memory) = self.frozen();
            let failure = || self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let is_enough = memory == 0 || memory.saturating_add(bytes) <= most.saturating_mul(2);
            if segments < MOST_FROZEN && is_enough {
                return Ok(());
            }
            if let Some(reason) = failure() {
                return Err(reason);
            }
            let left = MOST_WAIT.saturating_sub(begin.elapsed());
            if self.written.recv_timeout(left).is_err() {
                return Err(failure().unwrap_or_else(|| "blocks are written too slowly".to_owned()));
            }
        }
    }

    /// Most heads of a tenant whose blocks are not written yet, and the memory of all of them in bytes.
    fn frozen(&self) -> (usize, usize) {
        let states = self.shared.tenants.states();
        states.iter().map(|state| state.read()).fold((0, 0), |(most, bytes), state| {
            let memory: usize = state.frozen.iter().map(|(_, head)| head.read().memory()).sum();
            (most.max(state.frozen.len()), bytes + memory)
        })
    }

    fn append(&mut self, waiting: Vec<PendingBatch>) {
        let waiting = self.without_repeated(waiting);
        if waiting.is_empty() {
            return;
        }
        let bytes = waiting.iter().map(|one| one.batch.memory()).sum();
        if let Err(reason) = self.make_room(bytes) {
            return refuse(waiting, &reason);
        }
        let written = self.write(&waiting);
        let failure = written.as_ref().err().map(ToString::to_string);
        *self.shared.log_failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        if let Err(error) = written {
            tracing::error!(%error, "the write-ahead log cannot be written");
            return refuse(waiting, &error.to_string());
        }
        let counters = &self.shared.counters;
        counters.log_bytes.store(self.segment.len(), Ordering::Relaxed);
        for PendingBatch { batch, done, .. } in waiting {
            counters.batches.fetch_add(1, Ordering::Relaxed);
            batch.request.into_iter().for_each(|request| self.taken.insert(request));
            counters.samples.fetch_add(batch.samples().len() as u64, Ordering::Relaxed);
            // If the sender is gone, its batch is stored all the same.
            let _ = done.send(Ok(()));
        }
    }

    /// Adds batches to their heads and to the log; to neither on failure.
    fn write(&mut self, batches: &[PendingBatch]) -> Result<(), StoreError> {
        let head = |tenant| self.shared.tenants.get_or_new(tenant).read().head.clone();
        let heads: Vec<Arc<Head>> = batches.iter().map(|one| head(&one.tenant)).collect();
        let marks: Vec<Mark> = heads.iter().map(|head| head.mark()).collect();
        let too_large = || StoreError::Full("a batch is too large".to_owned());
        let record = |(head, one): (&Arc<Head>, &PendingBatch)| {
            head.segment.store(self.segment.number, Ordering::Relaxed);
            head.append_logged(one.tenant.as_str(), &one.batch).ok_or_else(too_large)
        };
        let records: Result<Vec<Vec<u8>>, StoreError> = heads.iter().zip(batches).map(record).collect();
        let written = records.and_then(|records| {
            self.segment.append(&records.iter().map(|record| &**record).collect::<Vec<_>>())
        });
        if written.is_err() {
            heads.iter().zip(marks).for_each(|(head, mark)| head.reset(mark));
        }
        written
    }

    /// Removes the batches of requests that are already stored, and acknowledges these.
    fn without_repeated(&self, waiting: Vec<PendingBatch>) -> Vec<PendingBatch> {
        let (mut now, mut new) = (HashSet::new(), Vec::new());
        for one in waiting {
            let answer = match one.batch.request {
                Some(request) if self.taken.has(request) => {
                    self.shared.counters.repeated.fetch_add(1, Ordering::Relaxed);
                    Ok(())
                }
                // The first one may still fail to reach the disk.
                Some(request) if !now.insert(request) => {
                    Err(StoreError::Full("the same request is being stored".to_owned()))
                }
                _ => {
                    new.push(one);
                    continue;
                }
            };
            let _ = one.done.send(answer);
        }
        new
    }

    /// Marks a tenant's data as deleted, and makes the other thread remove it. Batches before the deletion are deleted, later ones are kept.
    fn delete(&mut self, tenant: Tenant, done: oneshot::Sender<Result<(), StoreError>>) {
        let tombstone = match self.bury(&tenant) {
            Ok(tombstone) => tombstone,
            Err(error) => {
                let _ = done.send(Err(error));
                return;
            }
        };
        // The other thread may still add a block to the removed state, where no query looks.
        if let Some(state) = self.shared.tenants.remove(&tenant) {
            deletion::set_aside_blocks(&state);
        }
        let _ = self.tasks.send(Task::Delete { tombstone, done });
    }

    /// Writes a tombstone for a tenant's blocks and for its records in all segments so far.
    fn bury(&mut self, tenant: &Tenant) -> Result<Tombstone, StoreError> {
        self.rotate(None);
        if self.segment.len() > 0 {
            return Err(StoreError::Full("the write-ahead log cannot begin a segment".to_owned()));
        }
        let tombstones = &self.shared.tombstones;
        tombstones.lock().unwrap_or_else(PoisonError::into_inner).add(tenant, self.segment.number)
    }

    /// Starts a new segment and new heads; the old heads become blocks.
    fn rotate(&mut self, done: Option<oneshot::Sender<()>>) {
        self.since = Instant::now();
        let number = self.segment.number;
        if self.segment.len() > 0 {
            match Segment::create(&self.folder, number + 1) {
                Ok(segment) => self.segment = segment,
                // Keep using the old segment; a later attempt may succeed.
                Err(error) => return tracing::error!(%error, "the write-ahead log cannot begin a segment"),
            }
            for (_, state) in self.shared.tenants.all() {
                let mut parts = state.write();
                if !parts.head.is_empty() {
                    let head = std::mem::take(&mut parts.head);
                    parts.frozen.push((number, head));
                }
            }
            self.taken.save();
            let _ = self.tasks.send(Task::Write(Frozen { segment: number }));
        }
        if let Some(done) = done {
            let _ = self.tasks.send(Task::Tell(done));
        }
    }
}

fn refuse(waiting: Vec<PendingBatch>, reason: &str) {
    for one in waiting {
        let _ = one.done.send(Err(StoreError::Full(reason.to_owned())));
    }
}
