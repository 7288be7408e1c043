//! A record: magic, length, checksum, then a tenant, a batch and the key of its request.

use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::taken::RequestKey;

/// Magic bytes of a record, by which the next one is found after a damaged one.
pub(super) const MARK: [u8; 4] = *b"\xf1plb";
/// Bytes before the content: magic, length and CRC-32C of the content.
pub(super) const HEADER: usize = 12;

/// A batch of a tenant.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<B = Batch> {
    pub tenant: String,
    pub batch: B,
}

/// Encodes a record. Returns `None` if it exceeds 4 GiB. The request key comes last, where servers of versions without it do not look.
pub(crate) fn encode(tenant: &str, batch: &Batch) -> Option<Vec<u8>> {
    let record = Record { tenant: tenant.to_owned(), batch };
    let mut bytes = vec![0; HEADER];
    bytes = postcard::to_extend(&record, bytes).ok()?;
    bytes.extend(batch.request.iter().flat_map(|key| key.0.to_le_bytes()));
    let content = &bytes[HEADER..];
    let (length, checksum) = (u32::try_from(content.len()).ok()?, crc32c::crc32c(content));
    bytes[..4].copy_from_slice(&MARK);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

/// Decodes the record at the start of `bytes`. Returns it with its length, or `None` if it is incomplete or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<(Record, usize)> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let word = |place: usize| Some(u32::from_le_bytes(header.get(place..place + 4)?.try_into().ok()?));
    if header[..4] != MARK {
        return None;
    }
    let content = rest.get(..word(4)? as usize)?;
    if crc32c::crc32c(content) != word(8)? {
        return None;
    }
    let (mut record, key): (Record, &[u8]) = postcard::take_from_bytes(content).ok()?;
    record.batch.request = key.try_into().ok().map(|bytes| RequestKey(u128::from_le_bytes(bytes)));
    record.batch.is_whole().then_some((record, HEADER + content.len()))
}
