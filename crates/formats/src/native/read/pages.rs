//! Checks the claims in a table's page headers before the parquet crate acts on them.
//!
//! The parquet crate (60.1) allocates memory for as many dictionary entries as a page claims, and decompresses a page of any size: a file
//! of 1.6 kB requests 16 GiB, which aborts the process, and one of 63 kB expands to 1.9 GB. Its page reader returns a page
//! only after decompression, so headers are walked here. It checks the claims in the footer itself.

use bytes::Bytes;
use parquet::file::metadata::ColumnChunkMetaData;

use super::thrift::Walker;

/// Page types and encodings of parquet.thrift.
const DICTIONARY_PAGE: i64 = 2;
const PLAIN: i64 = 0;
/// PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY, BYTE_STREAM_SPLIT.
const ENCODINGS: [i64; 6] = [PLAIN, 2, 3, 5, 8, 9];

/// A page header; -1 where a field is missing.
struct PageHeader {
    kind: i64,
    unpacked: i64,
    packed: i64,
    values: i64,
    encoding: i64,
}

impl PageHeader {
    fn walk(walker: &mut Walker<'_>) -> Option<Self> {
        let mut header = PageHeader { kind: -1, unpacked: -1, packed: -1, values: -1, encoding: -1 };
        walker.structure(&mut |outer, field, value| match (outer, field) {
            (0, 1) => header.kind = value,
            (0, 2) => header.unpacked = value,
            (0, 3) => header.packed = value,
            // Data page, dictionary page, data page of version 2.
            (5 | 7 | 8, 1) => header.values = value,
            (5 | 7, 2) | (8, 4) => header.encoding = value,
            _ => {}
        })?;
        Some(header)
    }
}

/// Returns the decompressed size that the pages of a column chunk claim, or the error in them.
pub(super) fn unpacked_bytes(table: &Bytes, chunk: &ColumnChunkMetaData) -> Result<u64, &'static str> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let place = usize::try_from(start).ok().zip(usize::try_from(chunk.compressed_size()).ok());
    let pages = place.and_then(|(start, size)| table.get(start..)?.get(..size));
    let mut walker = Walker { rest: pages.ok_or("it lies outside of the table")? };
    let rows = chunk.num_values();
    let (mut unpacked, mut values) = (0_u64, 0_i64);
    while !walker.rest.is_empty() {
        let header = PageHeader::walk(&mut walker).ok_or("a page header that can't be")?;
        let packed = usize::try_from(header.packed).map_err(|_| "a page of negative size")?;
        walker.rest = walker.rest.get(packed..).ok_or("a page that is cut off")?;
        let size = u64::try_from(header.unpacked).map_err(|_| "a page of negative size")?;
        unpacked = unpacked.saturating_add(size);
        if !ENCODINGS.contains(&header.encoding) {
            return Err("an encoding that recordings do not use");
        }
        if header.kind == DICTIONARY_PAGE {
            // An entry takes at least 4 bytes.
            if header.encoding == PLAIN && header.values.cast_unsigned() > size / 4 {
                return Err("a dictionary with more entries than bytes for them");
            }
        } else {
            values = values.saturating_add(header.values.max(0));
        }
    }
    match values == rows {
        true => Ok(unpacked),
        false => Err("pages that hold another number of values than the column"),
    }
}
