//! Cache of the selections read last.
//!
//! Invariant: they are bounded in number, samples and time. Elsewhere: reading them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_documents::answers::LoadedRecording;
use plumb_store::Tenant;

/// Most cached selections: the one shown, its base, and the previous pair.
const KEPT: usize = 4;
/// Most samples of all cached selections.
const MOST_SAMPLES: usize = 1_000_000;
/// Lifetime: views of the same selection are opened one after the other.
const LIFE: Duration = Duration::from_secs(30);

/// Identifies a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub tenant: Tenant,
    pub kind: String,
    pub selector: String,
    pub range: (i64, i64),
}

#[derive(Debug)]
struct Entry {
    key: Key,
    since: Instant,
    /// Locked while it is read: further requests for it wait.
    recording: Arc<Mutex<Option<Arc<LoadedRecording>>>>,
    /// Known once it has been read.
    samples: usize,
}

/// The selections read last. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selections(Arc<Mutex<VecDeque<Entry>>>);

impl Selections {
    /// The entry of a selection, empty until it was read.
    pub(super) fn entry(&self, key: &Key) -> Arc<Mutex<Option<Arc<LoadedRecording>>>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.since.elapsed() < LIFE);
        if let Some(entry) = entries.iter().find(|entry| entry.key == *key) {
            return entry.recording.clone();
        }
        let recording = Arc::<Mutex<_>>::default();
        let since = Instant::now();
        entries.push_back(Entry { key: key.clone(), since, recording: recording.clone(), samples: 0 });
        if entries.len() > KEPT {
            entries.pop_front();
        }
        recording
    }

    /// Sets the size of an entry; the oldest entries are removed until all fit.
    pub(super) fn weigh(&self, key: &Key, samples: usize) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key) {
            entry.samples = samples;
        }
        while entries.iter().map(|entry| entry.samples).sum::<usize>() > MOST_SAMPLES {
            entries.pop_front();
        }
    }

    /// Removes the entries of a tenant.
    pub fn forget(&self, tenant: &Tenant) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|entry| entry.key.tenant != *tenant);
    }

    /// Removes expired entries, now and later.
    pub(super) fn forget_later(&self) {
        let selections = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LIFE).await;
            let mut entries = selections.0.lock().unwrap_or_else(PoisonError::into_inner);
            entries.retain(|entry| entry.since.elapsed() < LIFE);
        });
    }
}
