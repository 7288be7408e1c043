//! The servers of a bucket and their addresses.

use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use crate::batch::Millis;
use crate::clock::now;
use crate::error::StoreError;
use crate::shared::Shared;

/// Directory in which servers publish their addresses. No tenant can have this name.
const FOLDER: &str = ".plumb/servers";
/// Time after which a server that no longer publishes its address is ignored, in milliseconds.
const SILENT: i64 = 60_000;

/// Another server of the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Server name used in blocks.
    pub server: String,
    /// Address, such as `http://10.0.0.7:4041`.
    pub address: String,
    /// Time of publication.
    pub seen_ms: Millis,
}

/// Publishes this server's address, and reads those of the others.
pub(crate) fn refresh(shared: &Shared) -> Result<(), StoreError> {
    if !shared.bucket.is_shared() {
        return Ok(());
    }
    if let Some(address) = &shared.options.address {
        let own = Peer { server: shared.server.clone(), address: address.clone(), seen_ms: now() };
        let json = serde_json::to_vec(&own).unwrap_or_default();
        shared.bucket.put(&format!("{FOLDER}/{}.json", shared.server), json.into())?;
    }
    let mut peers: Vec<Peer> = Vec::new();
    for (path, written) in shared.bucket.list(FOLDER)? {
        let is_silent = now().0.saturating_sub(written.0) > SILENT;
        if is_silent || path.ends_with(&format!("/{}.json", shared.server)) {
            continue;
        }
        let Some((json, _)) = shared.bucket.find(&path)? else { continue };
        peers.extend(serde_json::from_slice::<Peer>(&json).ok());
    }
    *shared.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers;
    Ok(())
}
