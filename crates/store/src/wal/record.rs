//! A record: magic, length, checksum, then a tenant, a batch and the key of its request, compressed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::taken::RequestKey;

/// First magic bytes of a record, by which the next one is found after a damaged one. The last says whether it is compressed.
pub(super) const MARK: [u8; 3] = *b"\xf1pl";
/// Last magic byte of a compressed record, whose content begins with its length before.
const PACKED: u8 = b'z';
/// Last magic byte of a record of a version that did not compress.
const PLAIN: u8 = b'b';
/// Level of compression. A dictionary of earlier records makes a record no smaller at it, and a higher one takes a fifth of the time of a request.
const LEVEL: i32 = 1;
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
    let mut plain = postcard::to_extend(&record, Vec::new()).ok()?;
    plain.extend(batch.request.iter().flat_map(|key| key.0.to_le_bytes()));
    let mut bytes = vec![0; HEADER];
    bytes.extend(u32::try_from(plain.len()).ok()?.to_le_bytes());
    bytes.extend(zstd::bulk::compress(&plain, LEVEL).ok()?);
    let content = &bytes[HEADER..];
    let (length, checksum) = (u32::try_from(content.len()).ok()?, crc32c::crc32c(content));
    bytes[..3].copy_from_slice(&MARK);
    bytes[3] = PACKED;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

/// Decodes the record at the start of `bytes`. Returns it with its length, or `None` if it is incomplete or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<(Record, usize)> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let word = |place: usize| Some(u32::from_le_bytes(header.get(place..place + 4)?.try_into().ok()?));
    if header[..3] != MARK {
        return None;
    }
    let content = rest.get(..word(4)? as usize)?;
    if crc32c::crc32c(content) != word(8)? {
        return None;
    }
    let plain = match header[3] {
        PACKED => Cow::Owned(unpacked(content)?),
        PLAIN => Cow::Borrowed(content),
        _ => return None,
    };
    let (mut record, key): (Record, &[u8]) = postcard::take_from_bytes(&plain).ok()?;
    record.batch.request = key.try_into().ok().map(|bytes| RequestKey(u128::from_le_bytes(bytes)));
    record.batch.is_whole().then_some((record, HEADER + content.len()))
}

fn unpacked(content: &[u8]) -> Option<Vec<u8>> {
    let (length, packed) = content.split_first_chunk()?;
    zstd::bulk::decompress(packed, u32::from_le_bytes(*length) as usize).ok()
}
