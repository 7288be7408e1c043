//! The compaction lease: only one of a bucket's servers at a time compacts and removes blocks.
//!
//! The lease is an object that is overwritten only if its version is still the one that was read; the object store guarantees this. A server whose
//! lease has expired may briefly do the same work as the next holder; [`crate::live`] then ignores one of the two results.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::batch::Millis;
use crate::bucket::Bucket;
use crate::error::StoreError;

/// Path of the lease. No tenant can have this name.
const PATH: &str = ".plumb/compaction.json";
/// Duration of the lease without renewal, in milliseconds.
const HELD: i64 = 180_000;
/// Largest clock difference between servers, in milliseconds.
const SKEW: i64 = 30_000;

#[derive(Serialize, Deserialize)]
struct LeaseFile {
    server: String,
    until_ms: Millis,
}

/// Acquires or renews the lease. Returns whether this server holds it. A directory belongs to a single server, which always holds it.
pub(crate) fn hold(bucket: &Bucket, server: &str, now: Millis) -> Result<bool, StoreError> {
    if !bucket.is_shared() {
        return Ok(true);
    }
    let found = bucket.find(PATH)?;
    let is_free = |bytes: &Bytes| match serde_json::from_slice::<LeaseFile>(bytes) {
        Ok(lease) => lease.server == server || lease.until_ms.0.saturating_add(SKEW) < now.0,
        Err(_) => true,
    };
    if found.as_ref().is_some_and(|(bytes, _)| !is_free(bytes)) {
        return Ok(false);
    }
    let lease = LeaseFile { server: server.to_owned(), until_ms: Millis(now.0.saturating_add(HELD)) };
    let bytes = serde_json::to_vec(&lease).unwrap_or_default();
    bucket.put_if(PATH, bytes.into(), found.map(|(_, version)| version))
}
