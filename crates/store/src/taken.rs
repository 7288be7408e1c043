//! Recently stored requests: a request whose answer was lost is sent again, and must count once.
//!
//! Invariant: a request in the log is remembered for [`KEPT`] after its arrival, across restarts and crashes: the log's records contain the keys, and
//! this file those of segments that have become blocks. Each server remembers its own requests only: one that is repeated to another server counts
//! twice.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::{XxHash3_64, XxHash3_128};

use crate::batch::Millis;
use crate::clock::now;
use crate::tenant::Tenant;

/// Time for which a request is remembered, in milliseconds.
const KEPT: i64 = 3_600_000;
/// Most requests that are remembered, in some 100 MB.
const MOST: usize = 1 << 20;

/// Identity of a request: a hash of its tenant and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestKey(pub(crate) u128);

impl RequestKey {
    /// The key of a tenant's request. Only for formats in which two requests of the same bytes are the same request, such as those that contain
    /// timestamps.
    pub fn new(tenant: &Tenant, body: &[u8]) -> Self {
        let seed = XxHash3_64::oneshot(tenant.as_str().as_bytes());
        Self(XxHash3_128::oneshot_with_seed(seed, body))
    }
}

/// The requests stored in the last hour.
#[derive(Default)]
pub(crate) struct Taken {
    path: PathBuf,
    keys: HashSet<RequestKey>,
    order: VecDeque<(Millis, RequestKey)>,
}

impl Taken {
    /// Loads the requests saved when the server last started a segment in this log directory.
    pub fn open(folder: &Path) -> Self {
        let path = folder.join("taken");
        let read = || -> Option<VecDeque<(Millis, RequestKey)>> {
            let bytes = std::fs::read(&path).ok()?;
            let (checksum, content) = bytes.split_at_checked(4)?;
            if crc32c::crc32c(content).to_le_bytes() != checksum {
                tracing::warn!(path = %path.display(), "the list of received requests is damaged: requests that are sent again may count twice");
                return None;
            }
            postcard::from_bytes(content).ok()
        };
        let order = read().unwrap_or_default();
        Self { keys: order.iter().map(|&(_, key)| key).collect(), order, path }
    }

    /// Whether a request is remembered.
    pub fn has(&self, key: RequestKey) -> bool {
        self.keys.contains(&key)
    }

    /// Remembers a request.
    pub fn insert(&mut self, key: RequestKey) {
        if self.keys.insert(key) {
            self.order.push_back((now(), key));
        }
        if self.order.len() > MOST {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.keys.remove(&key);
        }
    }

    /// Drops the requests that are too old, and saves the others. Call it before removing a segment that contains them.
    pub fn save(&mut self) {
        let oldest = now().0.saturating_sub(KEPT);
        while self.order.front().is_some_and(|(time, _)| time.0 < oldest) {
            self.forget_first();
        }
        let content = postcard::to_stdvec(&self.order).unwrap_or_default();
        let partial = self.path.with_extension("part");
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(&crc32c::crc32c(&content).to_le_bytes())?;
            file.write_all(&content)?;
            file.sync_data()
        });
        if let Err(error) = written.and_then(|()| std::fs::rename(&partial, &self.path)) {
            let path = self.path.display();
            tracing::error!(%path, %error, "cannot write the list of received requests: requests that are sent again after a restart may count twice");
        }
    }
}
