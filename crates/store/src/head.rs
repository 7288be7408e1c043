//! A head: what came since the last block was written, in memory; the write-ahead log has it too.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use crate::batch::{Batch, Millis};

/// Samples that are in no block yet.
#[derive(Default)]
pub(crate) struct Head {
    batch: RwLock<Batch>,
    /// The time of the first and the last sample.
    span: Mutex<Option<(Millis, Millis)>>,
    /// The segment of the log that has the same samples; 0 as long as there are none.
    pub segment: AtomicU64,
    /// Where its stacks are among the calls that queries sum up, and in which generation of these.
    pub calls: Mutex<(u64, Vec<u32>)>,
}

impl Head {
    /// Adds a batch.
    pub fn append(&self, batch: &Batch) {
        let times = || batch.samples().iter().map(|sample| sample.time);
        if let Some((first, last)) = times().min().zip(times().max()) {
            let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
            let (from, until) = span.unwrap_or((first, last));
            *span = Some((from.min(first), until.max(last)));
        }
        self.batch.write().unwrap_or_else(PoisonError::into_inner).absorb(batch);
    }

    /// What it holds; nothing is added as long as somebody looks.
    pub fn read(&self) -> RwLockReadGuard<'_, Batch> {
        self.batch.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.read().samples().is_empty()
    }

    /// The time of the first and the last sample.
    pub fn span(&self) -> Option<(Millis, Millis)> {
        *self.span.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
