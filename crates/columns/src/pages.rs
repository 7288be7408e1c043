//! Checks the claims in a column chunk's page headers before the parquet crate acts on them.
//!
//! The parquet crate (60.1) allocates memory for as many dictionary entries as a page claims, and decompresses a page of any size: a file
//! of 1.6 kB requests 16 GiB, which aborts the process, and one of 63 kB expands to 1.9 GB. Its page reader returns a page
//! only after decompression, so headers are walked here. It checks the claims in the footer itself.
//!
//! A header is accepted only if it cannot be read in two ways: each field at most once, of its own type, and one kind of page.

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use crate::thrift::{Value, Walker};

/// Page types of parquet.thrift, each with the field of its own header.
const DATA_PAGE: (i64, i16) = (0, 5);
const DICTIONARY_PAGE: (i64, i16) = (2, 7);
const DATA_PAGE_V2: (i64, i16) = (3, 8);

/// The encoding PLAIN of parquet.thrift.
pub const PLAIN: i64 = 0;
/// The encoding DELTA_BYTE_ARRAY of parquet.thrift, whose pages need [`CheckedPages`](crate::CheckedPages).
pub const DELTA_BYTE_ARRAY: i64 = 7;
/// PLAIN, PLAIN_DICTIONARY, RLE, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT.
const ENCODINGS: [i64; 7] = [PLAIN, 2, 3, 5, DELTA_BYTE_ARRAY, 8, 9];

/// The claims in the header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageClaim {
    /// Offset of the header in the file.
    pub offset: usize,
    /// Length of header and page in the file, in bytes.
    pub length: usize,
    /// Size of the page once it is decompressed, in bytes; that of an uncompressed page.
    pub unpacked: u64,
    /// Number of values including nulls, of entries in a dictionary.
    pub values: u64,
    /// Number in parquet.thrift of the encoding of the values.
    pub encoding: i64,
    /// Whether the page is the chunk's dictionary.
    pub is_dictionary: bool,
}

/// The fields of a page header that matter.
#[derive(Default)]
struct PageHeader {
    kind: Option<i64>,
    unpacked: Option<i64>,
    packed: Option<i64>,
    values: Option<i64>,
    encoding: Option<i64>,
    /// The field of the header of its kind.
    own: Option<i16>,
}

impl PageHeader {
    /// Reads a header; `None` if it is malformed or ambiguous.
    fn walk(walker: &mut Walker<'_>) -> Option<Self> {
        let mut header = PageHeader::default();
        walker.structure(&mut |outer, field, value| header.add(outer, field, value))?;
        Some(header)
    }

    fn add(&mut self, outer: i16, field: i16, value: Value) -> Option<()> {
        let place = match (outer, field) {
            (0, 1) => &mut self.kind,
            (0, 2) => &mut self.unpacked,
            (0, 3) => &mut self.packed,
            (0, 5 | 7 | 8) => {
                let is_first = matches!(value, Value::Struct) && self.own.replace(field).is_none();
                return is_first.then_some(());
            }
            // Of an index page, which files of plumb do not have.
            (0, 6) => return None,
            (5 | 7 | 8, 1) => &mut self.values,
            (5 | 7, 2) | (8, 4) => &mut self.encoding,
            _ => return Some(()),
        };
        let Value::Integer(value) = value else { return None };
        // A wider value would be another one for a reader of 32 bits.
        let is_first = i32::try_from(value).is_ok() && place.replace(value).is_none();
        is_first.then_some(())
    }

    fn claim(&self, offset: usize, header: usize) -> Result<PageClaim, &'static str> {
        let malformed = "a malformed page header";
        let own = self.kind.zip(self.own).ok_or(malformed)?;
        let negative = "a page of negative size";
        let size = |value: Option<i64>| usize::try_from(value.ok_or(malformed)?).map_err(|_| negative);
        let (packed, unpacked) = (size(self.packed)?, size(self.unpacked)?);
        if ![DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2].contains(&own) {
            return Err("a page that is neither data nor a dictionary");
        }
        let claim = PageClaim {
            offset,
            length: header.checked_add(packed).ok_or(malformed)?,
            unpacked: unpacked.max(packed) as u64,
            values: u64::try_from(self.values.ok_or(malformed)?)
                .map_err(|_| "a negative number of values")?,
            encoding: self.encoding.ok_or(malformed)?,
            is_dictionary: own == DICTIONARY_PAGE,
        };
        if !ENCODINGS.contains(&claim.encoding) {
            return Err("an encoding that plumb does not use");
        }
        // An entry takes at least 4 bytes.
        if claim.is_dictionary && claim.values > claim.unpacked / 4 {
            return Err("a dictionary with more entries than bytes for them");
        }
        Ok(claim)
    }
}

/// Walks the page headers of a column chunk of the Parquet file `table`, and passes each to `accept`. `locations`: the file's index of
/// the chunk's data pages, if the chunk is read by it.
///
/// # Errors
/// The reason why the chunk must not be decoded.
pub fn check_pages(
    table: &[u8],
    chunk: &ColumnChunkMetaData,
    locations: Option<&[PageLocation]>,
    mut accept: impl FnMut(&PageClaim) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let place = usize::try_from(start).ok().zip(usize::try_from(chunk.compressed_size()).ok());
    let pages = place.and_then(|(start, size)| Some((start, table.get(start..)?.get(..size)?)));
    let (first, mut rest) = pages.ok_or("it lies outside of the file")?;
    let mut offset = first;
    let mut located = locations.map(|locations| locations.iter());
    let mut values = 0_u64;
    while !rest.is_empty() {
        let mut walker = Walker { rest };
        let header = PageHeader::walk(&mut walker).ok_or("a malformed page header")?;
        let claim = header.claim(offset, rest.len() - walker.rest.len())?;
        rest = rest.get(claim.length..).ok_or("a page that is cut off")?;
        if claim.is_dictionary && offset != first {
            return Err("a dictionary that is not the first page");
        }
        offset += claim.length;
        if !claim.is_dictionary {
            if located.as_mut().is_some_and(|all| !all.next().is_some_and(|one| is_at(one, &claim))) {
                return Err("an index of pages that shows other pages");
            }
            values = values.saturating_add(claim.values);
        }
        accept(&claim)?;
    }
    if located.is_some_and(|mut all| all.next().is_some()) {
        return Err("an index of pages that shows other pages");
    }
    if u64::try_from(chunk.num_values()) != Ok(values) {
        return Err("pages that hold another number of values than the column");
    }
    Ok(())
}

/// Whether an index shows the page.
fn is_at(location: &PageLocation, claim: &PageClaim) -> bool {
    usize::try_from(location.offset) == Ok(claim.offset)
        && usize::try_from(location.compressed_page_size) == Ok(claim.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> Option<PageHeader> {
        PageHeader::walk(&mut Walker { rest: bytes })
    }

    /// A data page with 5 values, PLAIN, 20 bytes: kind 0, unpacked 20, packed 20, header { values 5, encoding 0 }.
    const DATA: [u8; 14] = [0x15, 0, 0x15, 40, 0x15, 40, 0x2c, 0x15, 10, 0x15, 0, 0, 0, 0];

    #[test]
    fn a_header_is_read_in_one_way_or_not_at_all() {
        let claim = walk(&DATA).expect("a header").claim(7, 13).expect("a page");
        assert_eq!((claim.values, claim.unpacked, claim.length, claim.is_dictionary), (5, 20, 33, false));
        // A second number of values, in a second header of the page's kind.
        let twice = [&DATA[..12], &[0x0c, 10, 0x15, 2, 0x15, 0, 0], &[0]].concat();
        assert!(walk(&twice).is_none());
        // Field 1 by a number of more than 16 bits, and a number of values that is 5 in 32 bits.
        let wide = [&[0x05, 0x82, 0x80, 0x08, 6], &DATA[..]].concat();
        assert!(walk(&wide).is_none());
        let longer = [&DATA[..8], &[0x8a, 0x80, 0x80, 0x80, 0x20], &DATA[9..]].concat();
        assert!(walk(&longer).is_none());
        // A page whose own header is that of another kind.
        let mut other = DATA;
        other[1] = 4;
        assert!(walk(&other).expect("a header").claim(0, 13).is_err());
    }

    #[test]
    fn a_dictionary_has_bytes_for_its_entries() {
        // A dictionary, also in its older encoding, with 2^30 entries.
        for encoding in [0, 4] {
            let bytes =
                [0x15, 4, 0x15, 40, 0x15, 40, 0x4c, 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0x15, encoding, 0, 0];
            assert!(walk(&bytes).expect("a header").claim(0, 17).is_err());
        }
    }
}
