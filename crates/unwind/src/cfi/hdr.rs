//! `.eh_frame_hdr`: the linker's sorted table of functions and their FDEs.

use super::error::{CfiError, CfiErrorKind, SectionKind};
use super::pointer::{Bases, Encoding};
use super::reader::Reader;
use super::search;

/// Location of the table. Its entries are pairs of pointers: first code address, address of the FDE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    table: usize,
    count: usize,
    encoding: Encoding,
    size: usize,
}

impl Header {
    /// Decodes the header of the section. Fails if the section lacks a searchable table.
    pub(crate) fn parse(bytes: &[u8], bases: &Bases) -> Result<Header, CfiError> {
        let mut reader = Reader::new(bytes, 0, SectionKind::EhFrameHdr);
        let version = reader.u8()?;
        if version != 1 {
            return Err(reader.error(CfiErrorKind::UnknownVersion(version)));
        }
        let frame_pointer = Encoding(reader.u8()?);
        let count_encoding = Encoding(reader.u8()?);
        let encoding = Encoding(reader.u8()?);
        frame_pointer.skip(&mut reader, bases)?;
        let count = count_encoding.read(&mut reader, bases)?;
        let bad = reader.error(CfiErrorKind::UnknownPointerEncoding(encoding.0));
        if encoding == Encoding::OMIT {
            return Err(bad);
        }
        let size = encoding.fixed_size(bases).ok_or(bad)?;
        let table = reader.position();
        let too_large = reader.error(CfiErrorKind::TooLarge);
        let count = usize::try_from(count).map_err(|_| too_large)?;
        let table_size = count.checked_mul(2 * size).ok_or(too_large)?;
        reader.skip(table_size as u64)?;
        Ok(Header { table, count, encoding, size })
    }

    /// Returns the number of functions in the table.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of functions that begin at or before `pc`. The last of those may hold it.
    pub(crate) fn search(&self, bytes: &[u8], bases: &Bases, pc: u64) -> Result<usize, CfiError> {
        if self.encoding == Encoding::DATA_REL_SDATA4 {
            return Ok(self.search_usual(bytes, bases.section, pc));
        }
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.pointer(bytes, bases, middle, 0)? <= pc { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Returns the entries of a table in the format that all linkers write: offsets from the section's address.
    /// `None` for other formats.
    pub(crate) fn usual<'a>(&self, bytes: &'a [u8]) -> Option<&'a [[u8; 8]]> {
        let (entries, _) = bytes.get(self.table..)?.as_chunks::<8>();
        entries.get(..self.count).filter(|_| self.encoding == Encoding::DATA_REL_SDATA4)
    }

    /// Searches a table in that format for the last function that begins at or before `pc`. Returns its start and the
    /// address of its FDE, or `None` if there is no such function or the format differs.
    #[inline]
    pub(crate) fn nearest_usual(&self, bytes: &[u8], base: u64, pc: u64) -> Option<(u64, u64)> {
        let at = i32::try_from(pc.wrapping_sub(base) as i64).ok()?;
        let &[a, b, c, d, e, f, g, h] = search::last_before(self.usual(bytes)?, at)?;
        let address = |relative: [u8; 4]| base.wrapping_add_signed(i32::from_le_bytes(relative).into());
        Some((address([a, b, c, d]), address([e, f, g, h])))
    }

    /// Returns the start of the function at `index`.
    pub(crate) fn start(&self, bytes: &[u8], bases: &Bases, index: usize) -> Result<u64, CfiError> {
        self.pointer(bytes, bases, index, 0)
    }

    /// Returns the address of the FDE of the function at `index`.
    pub(crate) fn fde(&self, bytes: &[u8], bases: &Bases, index: usize) -> Result<u64, CfiError> {
        self.pointer(bytes, bases, index, self.size)
    }

    fn pointer(&self, bytes: &[u8], bases: &Bases, index: usize, column: usize) -> Result<u64, CfiError> {
        let at = self.table.saturating_add(index.saturating_mul(2 * self.size)).saturating_add(column);
        self.encoding.read(&mut Reader::new(bytes, at, SectionKind::EhFrameHdr), bases)
    }

    /// Searches a table in the usual format, without decoding pointers in the loop.
    fn search_usual(&self, bytes: &[u8], base: u64, pc: u64) -> usize {
        let relative = pc.wrapping_sub(base) as i64;
        let table = bytes.get(self.table..).unwrap_or_default();
        let (entries, _) = table.as_chunks::<8>();
        let entries = entries.get(..self.count).unwrap_or(entries);
        entries.partition_point(|entry| {
            let begin = i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
            i64::from(begin) <= relative
        })
    }
}
