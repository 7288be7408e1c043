//! Reads one table of a block: whole columns, or ranges of rows. Pages without any of these rows are not decompressed.
//!
//! The files were already verified against their checksums, which whoever forges a file can compute too: before a column is decoded its page
//! headers are checked against the limits of the table, texts that are made of prefixes are measured, and a panic of the decoder becomes an error.

use std::sync::Arc;

use bytes::Bytes;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, SchemaDescriptor};
use plumb_columns::{CheckedPages, PageBudget, check_pages, guarded};

use super::limits::TableLimits;
use super::meta::BlockCounts;
use super::row_ranges::RowRanges;
use super::schema::BlockTable;
use crate::labels::LabelTexts;

/// Most values for which there is room before they are read.
const MOST_RESERVED: usize = 16 << 20;

/// Number of texts that are read at a time.
const SOME_TEXTS: usize = 1024;

/// Reader of a table.
pub(crate) struct TableReader {
    bytes: Bytes,
    file: SerializedFileReader<Bytes>,
    limits: TableLimits,
    rows: usize,
}

impl TableReader {
    /// Reads the footer of a file, in a block with these contents.
    ///
    /// # Errors
    /// The file is no Parquet file, has more rows than the block can have, or lacks a column of `table`, as one of another version of plumb may.
    pub fn new(bytes: Bytes, table: BlockTable, counts: &BlockCounts) -> Result<Self> {
        let limits = TableLimits::new(table, counts, bytes.len());
        let file = unpanicked(|| {
            let with_pages = ReadOptionsBuilder::new().with_page_index().build();
            let file = SerializedFileReader::new_with_options(bytes.clone(), with_pages);
            // Other writers may leave out the index of pages.
            file.or_else(|_| SerializedFileReader::new(bytes.clone()))
        })?;
        check_columns(file.metadata().file_metadata().schema_descr(), table)?;
        let groups = file.metadata().row_groups().iter();
        let rows = groups
            .map(|group| u64::try_from(group.num_rows()).ok())
            .try_fold(0, |sum: u64, rows| sum.checked_add(rows?));
        let rows = rows.filter(|&rows| rows <= limits.rows()).and_then(|rows| usize::try_from(rows).ok());
        let too_many = || ParquetError::General("it has more rows than the block can have".into());
        Ok(Self { rows: rows.ok_or_else(too_many)?, bytes, file, limits })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
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

    pub fn bytes(&self, column: usize, rows: &RowRanges) -> Result<Vec<ByteArray>> {
        self.ranges::<ByteArrayType>(column, rows)
    }

    /// Calls `visit` with each text of a column.
    pub fn each_text(&self, column: usize, rows: &RowRanges, mut visit: impl FnMut(&str)) -> Result<()> {
        // Few at a time: each takes memory of its own.
        let mut some = Vec::with_capacity(SOME_TEXTS);
        self.each_range::<ByteArrayType>(column, rows, |reader, _, count| {
            read_exactly(count, |left| {
                some.clear();
                let read = reader.read_records(left.min(SOME_TEXTS), None, None, &mut some)?.0;
                some.iter().try_for_each(|text| text.as_utf8().map(&mut visit))?;
                Ok(read)
            })
        })
    }

    /// Values of a column of lists, and the length of each list.
    pub fn i32_lists(&self, column: usize, rows: &RowRanges) -> Result<(Vec<i32>, Vec<usize>)> {
        self.lists::<Int32Type>(column, rows)
    }

    /// Texts of a column of lists, equal ones shared, and the length of each list.
    pub fn text_lists(&self, column: usize, texts: &mut LabelTexts) -> Result<(Vec<Arc<str>>, Vec<usize>)> {
        let (values, lengths) = self.lists::<ByteArrayType>(column, &self.all())?;
        let shared = values.iter().map(|value| value.as_utf8().map(|text| texts.shared(text)));
        Ok((shared.collect::<Result<_>>()?, lengths))
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
        let metadata = self.file.metadata();
        let descriptor = metadata.file_metadata().schema_descr().column(column);
        let budget = PageBudget::new(self.limits.column_bytes(&descriptor));
        let mut first = 0;
        for place in 0..self.file.num_row_groups() {
            let of_group = usize::try_from(metadata.row_group(place).num_rows()).unwrap_or(0);
            let mut ranges = rows.within(first, of_group).peekable();
            first = first.saturating_add(of_group);
            if ranges.peek().is_none() {
                continue;
            }
            let decode = || {
                let (group, mut reader) = self.chunk::<T>(place, (column, &descriptor), &budget)?;
                let mut at = 0;
                for range in ranges {
                    read_exactly(range.start - at, |left| reader.skip_records(left))?;
                    read(&mut reader, &*group, range.len())?;
                    at = range.end;
                }
                Ok(())
            };
            unpanicked(decode)
                .map_err(|error| located(&error, metadata.row_group(place).columns().get(column)))?;
        }
        Ok(())
    }

    /// Reader of a column in a row group, whose page headers are checked.
    fn chunk<T: DataType>(
        &self,
        place: usize,
        (column, descriptor): (usize, &ColumnDescPtr),
        budget: &PageBudget,
    ) -> Result<(Box<dyn RowGroupReader + '_>, ColumnReaderImpl<T>)> {
        let group = self.file.get_row_group(place)?;
        let chunk = group.metadata().columns().get(column);
        let chunk = chunk.ok_or_else(|| ParquetError::General("it is missing in a group of rows".into()))?;
        if descriptor.max_rep_level() == 0 && chunk.num_values() != group.metadata().num_rows() {
            return Err(ParquetError::General("another number of values than rows".into()));
        }
        let index = self.file.metadata().page_index_for_row_group(place);
        let locations = index.page_locations(column).map(Vec::as_slice);
        check_pages(&self.bytes, chunk, locations, |page| {
            self.limits.check_page(descriptor, page)?;
            budget.charge(page.unpacked)
        })
        .map_err(|reason| ParquetError::General(reason.into()))?;
        let pages = CheckedPages::new(group.get_column_page_reader(column)?, descriptor, budget.clone());
        let reader = ColumnReaderImpl::new(descriptor.clone(), Box::new(pages));
        Ok((group, reader))
    }
}

/// Runs `decode`. A panic of the Parquet reader becomes an error.
fn unpanicked<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    guarded(decode).unwrap_or_else(|message| Err(ParquetError::General(message)))
}

/// An error with the column and the place in the file that it is of.
fn located(error: &ParquetError, chunk: Option<&ColumnChunkMetaData>) -> ParquetError {
    let message = match error {
        ParquetError::General(message) => message.clone(),
        other => other.to_string(),
    };
    ParquetError::General(match chunk {
        Some(chunk) => {
            let offset = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            format!("column {} at offset {offset}: {message}", chunk.column_path().string())
        }
        None => message,
    })
}

/// Refuses a table in which a column is missing or of another type: columns are read by their place, and one that is not there would end the reader in a panic.
fn check_columns(there: &SchemaDescriptor, table: BlockTable) -> Result<()> {
    let shape = |column: &ColumnDescriptor| {
        let name = column.path().parts().first().cloned();
        (column.physical_type(), column.max_def_level(), column.max_rep_level(), name)
    };
    let expected = SchemaDescriptor::new(table.schema()?);
    for (place, column) in expected.columns().iter().enumerate() {
        if there.columns().get(place).is_none_or(|one| shape(one) != shape(column)) {
            let name = column.path();
            return Err(ParquetError::General(format!("its column {name} is missing or of another type")));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn empty(columns: &str) -> Bytes {
        let schema = Arc::new(parse_message_type(&format!("message profiles {{ {columns} }}")).unwrap());
        let mut bytes = Vec::new();
        let properties = Arc::new(WriterProperties::default());
        SerializedFileWriter::new(&mut bytes, schema, properties).unwrap().close().unwrap();
        bytes.into()
    }

    #[test]
    fn a_table_of_another_version_is_refused_by_its_columns() {
        let read = |columns: &str| {
            TableReader::new(empty(columns), BlockTable::Profiles, &BlockCounts::default())
                .err()
                .map(|error| error.to_string())
        };
        let all = "required int32 series; required int64 ts; required int32 samples; required int64 total;";
        assert_eq!(read(all), None);
        assert_eq!(read(&format!("{all} required int64 more;")), None);
        let refused = |columns: &str, name: &str| {
            let message = read(columns).unwrap();
            assert!(message.contains(&format!("column \"{name}\"")), "{message}");
        };
        refused("required int32 series; required int64 ts; required int32 samples;", "total");
        refused(&all.replace("int64 ts", "int32 ts"), "ts");
        refused(&all.replace("required int32 samples", "optional int32 samples"), "samples");
    }
}
