//! Reads one table of a block: whole columns, or ranges of rows. Pages without any of these rows are not decompressed.
//!
//! The files were already verified against their checksums. Errors are handled all the same.

use bytes::Bytes;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;

use super::row_ranges::RowRanges;

/// Most values for which there is room before they are read.
const MOST_RESERVED: usize = 16 << 20;

/// Reader of a table.
pub(crate) struct TableReader(SerializedFileReader<Bytes>);

impl TableReader {
    pub fn new(bytes: Bytes) -> Result<Self> {
        let with_pages = ReadOptionsBuilder::new().with_page_index().build();
        let reader = SerializedFileReader::new_with_options(bytes.clone(), with_pages);
        // Other writers may leave out the index of pages.
        reader.or_else(|_| SerializedFileReader::new(bytes)).map(Self)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.0.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    pub fn i32s(&self, column: usize) -> Result<Vec<i32>> {
        self.i32_ranges(column, &self.all())
    }

    pub fn i64s(&self, column: usize) -> Result<Vec<i64>> {
        self.i64_ranges(column, &self.all())
    }

    pub fn i32_ranges(&self, column: usize, rows: &RowRanges) -> Result<Vec<i32>> {
        self.ranges::<Int32Type>(column, rows)
    }

    pub fn i64_ranges(&self, column: usize, rows: &RowRanges) -> Result<Vec<i64>> {
        self.ranges::<Int64Type>(column, rows)
    }

    pub fn bools(&self, column: usize, rows: &RowRanges) -> Result<Vec<bool>> {
        self.ranges::<BoolType>(column, rows)
    }

    pub fn texts(&self, column: usize, rows: &RowRanges) -> Result<Vec<String>> {
        self.bytes(column, rows)?.iter().map(text).collect()
    }

    pub fn bytes(&self, column: usize, rows: &RowRanges) -> Result<Vec<ByteArray>> {
        self.ranges::<ByteArrayType>(column, rows)
    }

    /// Values of a column of lists, and the length of each list.
    pub fn i32_lists(&self, column: usize, rows: &RowRanges) -> Result<(Vec<i32>, Vec<usize>)> {
        self.lists::<Int32Type>(column, rows)
    }

    pub fn text_lists(&self, column: usize) -> Result<(Vec<String>, Vec<usize>)> {
        let (values, lengths) = self.lists::<ByteArrayType>(column, &self.all())?;
        Ok((values.iter().map(text).collect::<Result<_>>()?, lengths))
    }

    /// All rows.
    pub fn all(&self) -> RowRanges {
        RowRanges::all(self.rows())
    }

    fn ranges<T: DataType>(&self, column: usize, rows: &RowRanges) -> Result<Vec<T::T>> {
        let mut values = Vec::with_capacity(rows.count().min(self.rows()).min(MOST_RESERVED));
        self.each_range::<T>(column, rows, |reader, _, count| {
            read_exactly(count, |left| Ok(reader.read_records(left, None, None, &mut values)?.0))
        })?;
        Ok(values)
    }

    fn lists<T: DataType>(&self, column: usize, rows: &RowRanges) -> Result<(Vec<T::T>, Vec<usize>)> {
        let (mut values, mut lengths) = (Vec::new(), Vec::new());
        let (mut there, mut begins) = (Vec::new(), Vec::new());
        self.each_range::<T>(column, rows, |reader, group, count| {
            if count == group_rows(group) {
                let all = usize::try_from(group.metadata().column(column).num_values()).unwrap_or(0);
                values.reserve(all.min(MOST_RESERVED));
            }
            there.clear();
            begins.clear();
            read_exactly(count, |left| {
                Ok(reader.read_records(left, Some(&mut there), Some(&mut begins), &mut values)?.0)
            })?;
            for (&there, &continues) in there.iter().zip(&begins) {
                if continues == 0 {
                    lengths.push(0);
                }
                if let Some(length) = lengths.last_mut() {
                    *length += usize::from(there > 0);
                }
            }
            Ok(())
        })?;
        Ok((values, lengths))
    }

    /// Calls `read` at the first row of each range, with the number of rows to read.
    fn each_range<T: DataType>(
        &self,
        column: usize,
        rows: &RowRanges,
        mut read: impl FnMut(&mut ColumnReaderImpl<T>, &dyn RowGroupReader, usize) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        for place in 0..self.0.num_row_groups() {
            let of_group = usize::try_from(self.0.metadata().row_group(place).num_rows()).unwrap_or(0);
            let mut ranges = rows.within(first, of_group).peekable();
            first = first.saturating_add(of_group);
            if ranges.peek().is_none() {
                continue;
            }
            let group = self.0.get_row_group(place)?;
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
            let mut at = 0;
            for range in ranges {
                read_exactly(range.start - at, |left| reader.skip_records(left))?;
                read(&mut reader, &*group, range.len())?;
                at = range.end;
            }
        }
        Ok(())
    }
}

fn group_rows(group: &dyn RowGroupReader) -> usize {
    usize::try_from(group.metadata().num_rows()).unwrap_or(0)
}

/// Reads until all rows are present: the Parquet reader may stop at the end of a page.
fn read_exactly(rows: usize, mut read: impl FnMut(usize) -> Result<usize>) -> Result<()> {
    let mut left = rows;
    while left > 0 {
        match read(left)? {
            0 => return Err(ParquetError::General(format!("{left} rows are missing"))),
            some => left = left.saturating_sub(some),
        }
    }
    Ok(())
}

fn text(bytes: &ByteArray) -> Result<String> {
    bytes.as_utf8().map(str::to_owned)
}
