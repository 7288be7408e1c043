//! Limits that each block of plumb's keeps, and by which a forged one is recognized before memory is taken for it.
//!
//! The limits follow from the numbers of rows in `block.json`, from the sizes of pages that [`BlockTable::properties`] sets, and from
//! [`most_text`], to which the writer shortens names. A block may be much smaller than its contents: equal values take almost no space.

use parquet::basic::Type;
use parquet::schema::types::ColumnDescriptor;
use plumb_columns::{PLAIN, PageClaim};

use super::meta::BlockCounts;
use super::schema::{BlockTable, GROUP};

/// Bytes that the values of a column may have whatever the number of rows: some pages, each of 1 MiB and the texts that were last added.
const BASE: u64 = 64 << 20;
/// Bytes of a text for which there is always room, on average.
pub(super) const ROOMY_TEXT: u64 = 4 << 10;
/// Bytes of a number, with its share of what is around the values of a page.
const NUMBER: u64 = 16;
/// Bytes of a list, where `block.json` does not tell the number of elements: a thousand frames, or a series with long labels.
const LIST: u64 = 32 << 10;

/// Most bytes of texts in a column with this number of rows.
pub(super) fn most_text(rows: usize) -> u64 {
    (rows as u64).saturating_mul(ROOMY_TEXT).saturating_add(BASE)
}

/// Limits of a table.
#[derive(Clone, Copy)]
pub(crate) struct TableLimits {
    rows: u64,
    /// Number of elements of lists, where it is known.
    elements: Option<u64>,
}

impl TableLimits {
    /// Limits of a table in a file of `bytes` bytes, in a block with these contents.
    pub fn new(table: BlockTable, counts: &BlockCounts, bytes: usize) -> Self {
        let bytes = bytes as u64;
        let (rows, elements) = match table {
            BlockTable::Series => (counts.series, None),
            BlockTable::Profiles => (counts.profiles, None),
            BlockTable::Samples | BlockTable::Hours => (counts.samples, None),
            // The hashes of stacks take 8 bytes each, which cannot be compressed.
            BlockTable::Stacks => {
                let elements = Some(counts.stack_frames).filter(|&frames| frames > 0);
                (counts.stacks.min(bytes), elements)
            }
            // No two frames are equal, which takes some bits of each.
            BlockTable::Frames => (counts.frames.min(bytes.saturating_mul(16)), None),
        };
        Self { rows, elements }
    }

    /// Most rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Most bytes that decoding a column may take: its pages, and texts that are made of prefixes.
    pub fn column_bytes(&self, column: &ColumnDescriptor) -> u64 {
        let rows = self.rows;
        let of_rows = match (column.max_rep_level(), column.physical_type(), self.elements) {
            (0, Type::BYTE_ARRAY, _) => rows.saturating_mul(2 * ROOMY_TEXT + NUMBER).saturating_add(BASE),
            (0, ..) => rows.saturating_mul(NUMBER),
            (_, _, Some(elements)) => elements.saturating_add(rows).saturating_mul(NUMBER),
            _ => rows.saturating_mul(LIST),
        };
        of_rows.saturating_add(BASE)
    }

    /// Checks the number of values of a page, for which its reader takes memory at once.
    ///
    /// # Errors
    /// There are more than a page of the column has.
    pub fn check_page(self, column: &ColumnDescriptor, page: &PageClaim) -> Result<(), &'static str> {
        let of_bytes = match (column.max_rep_level(), page.encoding) {
            (0, _) => 0,
            (_, PLAIN) => page.unpacked / 4,
            _ => page.unpacked.saturating_mul(8),
        };
        match page.values <= of_bytes.saturating_add(GROUP as u64) {
            true => Ok(()),
            false => Err("a page with more values than a page has"),
        }
    }
}
