//! A record: magic, length and checksum of its content, then the content and the key of its request, compressed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::addition::Addition;
use crate::batch::Batch;
use crate::taken::RequestKey;

/// First magic bytes of a record, by which the next one is found after a damaged one. The last says what the content is.
pub(super) const MARK: [u8; 3] = *b"\xf1pl";
/// Last magic byte of an addition. Its content begins with its length before compression.
const ADDITION: u8 = b'a';
/// Last magic byte of a whole batch, compressed likewise: what older versions wrote.
const PACKED: u8 = b'z';
/// Last magic byte of a whole batch of still older ones, which did not compress.
const PLAIN: u8 = b'b';
/// Level of compression. Higher ones take more time than a request may.
const LEVEL: i32 = 1;
/// Bytes before the content: magic, length and CRC-32C of the content.
pub(super) const HEADER: usize = 12;

/// A batch of a tenant.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WholeBatch<B = Batch> {
    pub tenant: String,
    pub batch: B,
}

/// The content of a record.
pub(super) enum Content {
    Addition(Addition<'static>),
    Whole(WholeBatch),
}

/// A decoded record.
pub(super) struct Record {
    pub content: Content,
    pub request: Option<RequestKey>,
    /// Bytes of the record.
    pub length: usize,
}

/// Encodes a record. Returns `None` if it exceeds 4 GiB. The request's key comes last, where servers of versions without it do not look.
pub(super) fn encode(addition: &Addition<'_>, request: Option<RequestKey>) -> Option<Vec<u8>> {
    let mut plain = postcard::to_extend(addition, Vec::new()).ok()?;
    plain.extend(request.iter().flat_map(|key| key.0.to_le_bytes()));
    let mut bytes = vec![0; HEADER];
    bytes.extend(u32::try_from(plain.len()).ok()?.to_le_bytes());
    bytes.extend(zstd::bulk::compress(&plain, LEVEL).ok()?);
    let content = &bytes[HEADER..];
    let (length, checksum) = (u32::try_from(content.len()).ok()?, crc32c::crc32c(content));
    bytes[..3].copy_from_slice(&MARK);
    bytes[3] = ADDITION;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

/// Decodes the record at the start of `bytes`. Returns `None` if it is incomplete or damaged.
pub(super) fn decode(bytes: &[u8]) -> Option<Record> {
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
        ADDITION | PACKED => Cow::Owned(unpacked(content)?),
        PLAIN => Cow::Borrowed(content),
        _ => return None,
    };
    let (decoded, key) = match header[3] {
        ADDITION => {
            let (addition, key) = postcard::take_from_bytes(&plain).ok()?;
            (Content::Addition(addition), key)
        }
        _ => {
            let (whole, key) = postcard::take_from_bytes::<WholeBatch>(&plain).ok()?;
            whole.batch.is_whole().then_some((Content::Whole(whole), key))?
        }
    };
    let request = key.try_into().ok().map(|bytes| RequestKey(u128::from_le_bytes(bytes)));
    Some(Record { content: decoded, request, length: HEADER + content.len() })
}

fn unpacked(content: &[u8]) -> Option<Vec<u8>> {
    let (length, packed) = content.split_first_chunk()?;
    zstd::bulk::decompress(packed, u32::from_le_bytes(*length) as usize).ok()
}
