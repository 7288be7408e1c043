//! Which of the servers of a bucket compacts and removes blocks: one at a time.
//!
//! The lease is an object that is written only over the version that was read, which object stores decide. Whose lease has run out may do the same
//! work at the same time as the next one for a moment; what then is there twice is one of two by [`crate::live`].

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::batch::Millis;
use crate::bucket::Bucket;
use crate::error::StoreError;

/// Where it is: no tenant has such a name.
const PATH: &str = ".plumb/compaction.json";
/// How long it is held without being renewed.
const HELD: i64 = 180_000;
/// By how much the clocks of servers may differ.
const SKEW: i64 = 30_000;

#[derive(Serialize, Deserialize)]
struct LeaseFile {
    server: String,
    until_ms: Millis,
}

/// Takes or renews the lease; says whether this server has it. What is in a directory is this server's alone.
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
