//! Unpacks gzip, zstd and xz, within bounds.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::ReadError;

/// Bytes that any file may unpack to, however small it is.
const FLOOR: u64 = 64 << 20;

/// Bytes that a file may unpack to for each of its own. Profiles as JSON take a tenth to a thirtieth when compressed.
const EXPANSION: u64 = 64;

/// Most memory for xz's dictionary, in KiB: its strongest preset needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// Compression formats and the bytes that files in them begin with.
const PACKED: [(&str, &[u8]); 3] =
    [("gzip", b"\x1f\x8b"), ("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0")];

/// The compression format of a file that begins with `start`; `None` if it is not compressed, or in a format that is not unpacked.
pub fn compression(start: &[u8]) -> Option<&'static str> {
    PACKED.into_iter().find(|(_, magic)| start.starts_with(magic)).map(|(name, _)| name)
}

/// The unpacked bytes; `None` if they are not compressed.
///
/// # Errors
/// The data are damaged, or unpack to more than 64 MiB and 64 times their size.
pub fn unpack(bytes: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
    let Some(format) = compression(bytes) else { return Ok(None) };
    let limit = FLOOR.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
    let mut unpacked = Vec::new();
    let read = decoder(format, bytes)
        .and_then(|decoder| decoder.take(limit.saturating_add(1)).read_to_end(&mut unpacked));
    if let Err(error) = read {
        return Err(ReadError::Packed { format, offset: unpacked.len() as u64, error });
    }
    if unpacked.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(Some(unpacked))
}

fn decoder<'b>(format: &str, bytes: &'b [u8]) -> io::Result<Box<dyn Read + 'b>> {
    Ok(match format {
        "zstd" => Box::new(zstd::stream::read::Decoder::with_buffer(bytes)?),
        "xz" => Box::new(lzma_rust2::XzReader::new_mem_limit(bytes, true, XZ_MEMORY_KIB)),
        _ => Box::new(MultiGzDecoder::new(bytes)),
    })
}
