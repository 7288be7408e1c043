//! Reads one table of a block: whole columns, or ranges of rows.
//!
//! The files were already verified against their checksums. Errors are handled all the same.

use bytes::Bytes;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

/// Most values for which there is room before they are read.
const MOST_RESERVED: usize = 16 << 20;

/// Reader of a table.
pub(crate) struct TableReader(SerializedFileReader<Bytes>);

impl TableReader {
    pub fn new(bytes: Bytes) -> Result<Self> {
        SerializedFileReader::new(bytes).map(Self)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.0.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    pub fn i32s(&self, column: usize) -> Result<Vec<i32>> {
        self.whole::<Int32Type>(column)
    }

    pub fn i64s(&self, column: usize) -> Result<Vec<i64>> {
        self.whole::<Int64Type>(column)
    }

    pub fn bools(&self, column: usize) -> Result<Vec<bool>> {
        self.whole::<parquet::data_type::BoolType>(column)
    }

    pub fn texts(&self, column: usize) -> Result<Vec<String>> {
        self.bytes(column)?.iter().map(text).collect()
    }

    pub fn bytes(&self, column: usize) -> Result<Vec<ByteArray>> {
        self.whole::<ByteArrayType>(column)
    }

    /// Values of a column of lists, and the length of each list.
    pub fn i32_lists(&self, column: usize) -> Result<(Vec<i32>, Vec<usize>)> {
        self.lists::<Int32Type>(column)
    }

    pub fn text_lists(&self, column: usize) -> Result<(Vec<String>, Vec<usize>)> {
        let (values, lengths) = self.lists::<ByteArrayType>(column)?;
        Ok((values.iter().map(text).collect::<Result<_>>()?, lengths))
    }

    /// Rows of a column from `from` to before `until`.
    pub fn i32_range(&self, column: usize, from: usize, until: usize) -> Result<Vec<i32>> {
        self.range::<Int32Type>(column, from, until)
    }

    pub fn i64_range(&self, column: usize, from: usize, until: usize) -> Result<Vec<i64>> {
        self.range::<Int64Type>(column, from, until)
    }

    fn whole<T: DataType>(&self, column: usize) -> Result<Vec<T::T>> {
        self.range::<T>(column, 0, self.rows())
    }

    fn range<T: DataType>(&self, column: usize, from: usize, until: usize) -> Result<Vec<T::T>> {
        let mut values = Vec::with_capacity(until.saturating_sub(from).min(self.rows()).min(MOST_RESERVED));
        let mut first = 0;
        for place in 0..self.0.num_row_groups() {
            let group = self.0.get_row_group(place)?;
            let rows = group_rows(&*group);
            let (begin, end) = (from.max(first), until.min(first + rows));
            if begin < end {
                let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
                reader.skip_records(begin - first)?;
                read_exactly(end - begin, |left| Ok(reader.read_records(left, None, None, &mut values)?.0))?;
            }
            first += rows;
        }
        Ok(values)
    }

    fn lists<T: DataType>(&self, column: usize) -> Result<(Vec<T::T>, Vec<usize>)> {
        let (mut values, mut lengths) = (Vec::new(), Vec::new());
        for place in 0..self.0.num_row_groups() {
            let group = self.0.get_row_group(place)?;
            let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
            let all =
                usize::try_from(group.metadata().column(column).num_values()).unwrap_or(0).min(MOST_RESERVED);
            let (mut there, mut begins) = (Vec::with_capacity(all), Vec::with_capacity(all));
            values.reserve(all);
            read_exactly(group_rows(&*group), |left| {
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
        }
        Ok((values, lengths))
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
