//! Decompresses gzip, zstd and xz, within limits.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::ForeignError;

/// Decompressed size allowed for any file, however small.
const FLOOR: u64 = 64 << 20;

/// Additional decompressed size allowed per byte of the file. Compressed JSON profiles are a tenth to a thirtieth of their size.
const EXPANSION: u64 = 64;

/// Most memory for xz's dictionary, in KiB: its strongest preset needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// Compression formats and their magic numbers.
const PACKED: [(&str, &[u8]); 3] =
    [("gzip", b"\x1f\x8b"), ("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\0")];

/// Returns the compression format of a file that begins with `start`; `None` if it is not compressed, or in an unsupported format.
pub fn compression(start: &[u8]) -> Option<&'static str> {
    PACKED.into_iter().find(|(_, magic)| start.starts_with(magic)).map(|(name, _)| name)
}

/// Returns the decompressed bytes; `None` if they are not compressed.
///
/// # Errors
/// If the data is damaged, or expands to more than 64 MiB plus 64 times its size.
pub fn unpack(bytes: &[u8]) -> Result<Option<Vec<u8>>, ForeignError> {
    let Some(format) = compression(bytes) else { return Ok(None) };
    let limit = FLOOR.saturating_add(EXPANSION.saturating_mul(bytes.len() as u64));
    let mut unpacked = Vec::new();
    let read = decoder(format, bytes)
        .and_then(|decoder| decoder.take(limit.saturating_add(1)).read_to_end(&mut unpacked));
    if let Err(error) = read {
        return Err(ForeignError::Packed { format, offset: unpacked.len() as u64, error });
    }
    if unpacked.len() as u64 > limit {
        return Err(ForeignError::TooLarge { limit });
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
