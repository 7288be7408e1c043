//! Data of a server that is in no block yet, in the form in which it is sent to the bucket's other servers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::error::StoreError;
use crate::head::Head;
use crate::query::Selected;

/// Selected data of a server that is in no block yet, by log segment.
#[derive(Serialize, Deserialize)]
pub(crate) struct Unwritten {
    server: String,
    parts: Vec<(u64, Batch)>,
}

impl Unwritten {
    /// Collects the selected samples of the heads.
    pub fn of(selected: &Selected) -> Result<Self, StoreError> {
        let part = |head: &Arc<Head>| Ok((head.segment.load(Ordering::Relaxed), selected.of_head(head)?));
        let parts = selected.heads.iter().map(part).collect::<Result<_, StoreError>>()?;
        Ok(Self { server: selected.shared.server.clone(), parts })
    }

    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).unwrap_or_default()
    }

    /// Decodes and validates another server's answer.
    pub fn decode(bytes: &Bytes) -> Result<Self, StoreError> {
        let damaged = |message: &str| StoreError::Damaged {
            path: "another server's answer".into(),
            message: message.into(),
        };
        let unwritten: Self = postcard::from_bytes(bytes).map_err(|error| damaged(&error.to_string()))?;
        match unwritten.parts.iter().all(|(_, batch)| batch.is_whole()) {
            true => Ok(unwritten),
            false => Err(damaged("it points at what it doesn't have")),
        }
    }

    /// Heads of the parts that have not become blocks.
    pub fn heads(self, is_stored: impl Fn(&str, u64) -> bool) -> Vec<Head> {
        let mut stored: HashMap<u64, bool> = HashMap::new();
        let server = self.server;
        let mut is_new =
            |segment: u64| !*stored.entry(segment).or_insert_with(|| is_stored(&server, segment));
        self.parts
            .into_iter()
            .filter(|&(segment, _)| is_new(segment))
            .map(|(_, batch)| {
                // A batch that was read does not know its memory.
                let head = Head::default();
                head.append(&batch);
                head
            })
            .collect()
    }
}
