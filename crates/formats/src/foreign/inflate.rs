//! Unpacks gzip, within bounds.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::ReadError;

/// Bytes that any file may unpack to, however small it is.
const FLOOR: u64 = 64 << 20;

/// What a file may unpack to for each of its bytes. Profiles as JSON take a tenth to a thirtieth when compressed.
const EXPANSION: u64 = 64;

/// What the bytes unpack to; `None` if they are not compressed.
pub(super) fn inflate(bytes: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return Ok(None);
    }
    let limit = FLOOR.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
    let mut inflated = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(limit.saturating_add(1)).read_to_end(&mut inflated);
    if let Err(error) = read {
        return Err(ReadError::Gzip { offset: inflated.len() as u64, error });
    }
    if inflated.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(Some(inflated))
}
