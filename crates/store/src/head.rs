//! A head: recent samples in memory that are in no block yet. They are also in the write-ahead log.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use crate::batch::{Batch, Millis};
use crate::wal::{self, Logged};

/// Samples that are in no block yet.
#[derive(Default)]
pub(crate) struct Head {
    batch: RwLock<Batch>,
    /// Timestamps of the first and the last sample.
    span: Mutex<Option<(Millis, Millis)>>,
    /// Log segment with the same samples; 0 while there are none.
    pub segment: AtomicU64,
    /// Generation of the calls shared by queries, and the call of each of its stacks.
    pub calls: Mutex<(u64, Vec<u32>)>,
    /// Whether the stacks have too many calls for queries to share.
    pub is_alone: AtomicBool,
    /// The texts, frames, stacks and series that the log has.
    logged: Mutex<Logged>,
}

/// State of a head to which [`Head::reset`] goes back.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    samples: usize,
    logged: Logged,
}

impl Head {
    /// A head with the samples of a batch.
    pub fn of(batch: Batch) -> Self {
        Self { span: Mutex::new(span(&batch)), batch: RwLock::new(batch), ..Self::default() }
    }

    /// Adds a batch.
    pub fn append(&self, batch: &Batch) {
        if let Some((first, last)) = span(batch) {
            let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
            let (from, until) = span.unwrap_or((first, last));
            *span = Some((from.min(first), until.max(last)));
        }
        self.batch.write().unwrap_or_else(PoisonError::into_inner).absorb(batch);
    }

    /// Adds a batch. Returns its record for the log, or `None` if that is too large; the caller resets the head then, and wherever the record or one
    /// before it isn't written.
    pub fn append_logged(&self, tenant: &str, batch: &Batch) -> Option<Vec<u8>> {
        let mark = self.mark();
        self.append(batch);
        let whole = self.read();
        *self.logged.lock().unwrap_or_else(PoisonError::into_inner) = Logged::all(&whole);
        wal::encode_addition(tenant, &whole, mark.logged, mark.samples, batch.request)
    }

    /// The state before further batches.
    pub fn mark(&self) -> Mark {
        let logged = *self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        Mark { samples: self.read().samples().len(), logged }
    }

    /// Removes the samples added since. Their texts, frames, stacks and series stay, because queries may have read them, and are logged with the next batch.
    pub fn reset(&self, mark: Mark) {
        self.batch.write().unwrap_or_else(PoisonError::into_inner).samples.truncate(mark.samples);
        *self.logged.lock().unwrap_or_else(PoisonError::into_inner) = mark.logged;
    }

    /// Locks the samples for reading. Blocks [`Head::append`] in the meantime.
    pub fn read(&self) -> RwLockReadGuard<'_, Batch> {
        self.batch.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the head has no samples.
    pub fn is_empty(&self) -> bool {
        self.read().samples().is_empty()
    }

    /// Timestamps of the first and the last sample.
    pub fn span(&self) -> Option<(Millis, Millis)> {
        *self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Timestamps of the first and the last sample.
fn span(batch: &Batch) -> Option<(Millis, Millis)> {
    let times = || batch.samples().iter().map(|sample| sample.time);
    times().min().zip(times().max())
}
