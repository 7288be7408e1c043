//! A table being read: whole columns as vectors, each with one value per row of the table.

use std::cell::Cell;
use std::fmt::Display;

use bytes::Bytes;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use plumb_columns::{DELTA_BYTE_ARRAY, check_pages, guarded};

use super::error::ReadError;

/// Number of values decoded at a time, so that memory is charged before it is allocated.
const STEP: usize = 1 << 16;

/// The remaining decompressed size allowed.
pub(super) struct Budget {
    limit: u64,
    left: Cell<u64>,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
        Budget { limit, left: Cell::new(limit) }
    }

    pub(super) fn left(&self) -> u64 {
        self.left.get()
    }

    /// Charges `count` values of `each` bytes.
    pub(super) fn charge(&self, table: &'static str, count: u64, each: u64) -> Result<(), ReadError> {
        match count.checked_mul(each).and_then(|bytes| self.left.get().checked_sub(bytes)) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(ReadError::TooLarge { table, limit: self.limit }),
        }
    }
}

/// An opened table.
pub(super) struct TableReader<'a> {
    name: &'static str,
    offset: u64,
    bytes: Bytes,
    file: SerializedFileReader<Bytes>,
    rows: u64,
    budget: &'a Budget,
}

impl<'a> TableReader<'a> {
    /// Opens the Parquet file `bytes`, which starts at `offset` of the recording.
    pub(super) fn open(
        name: &'static str,
        bytes: Bytes,
        offset: u64,
        budget: &'a Budget,
    ) -> Result<Self, ReadError> {
        let damaged = |message: String| entry_error(name, offset, message);
        // Reading the footer allocates at most some hundred bytes per byte.
        budget.charge(name, bytes.len() as u64, 1)?;
        let file = guarded(|| SerializedFileReader::new(bytes.clone()))
            .map_err(damaged)?
            .map_err(|error| damaged(error.to_string()))?;
        let mut rows = 0_u64;
        for group in file.metadata().row_groups() {
            let more = u64::try_from(group.num_rows())
                .map_err(|_| damaged(format!("a group of {} rows", group.num_rows())))?;
            rows = rows.saturating_add(more);
        }
        // Row ids have 32 bits; the last one stays unused so that their number fits as well.
        if rows >= u32::MAX.into() {
            return Err(damaged(format!("it claims {rows} rows")));
        }
        Ok(TableReader { name, offset, bytes, file, rows, budget })
    }

    /// Returns the error for an invalid value.
    pub(super) fn bad(&self, column: &'static str, row: usize, message: impl Into<String>) -> ReadError {
        ReadError::Row { table: self.name, column, row: row as u64, message: message.into() }
    }

    pub(super) fn bools(&self, column: &'static str) -> Result<Vec<bool>, ReadError> {
        self.all::<BoolType>(column)
    }

    /// Reads a column that older versions of the format lack; empty without it.
    pub(super) fn bools_if_there(&self, column: &'static str) -> Result<Vec<bool>, ReadError> {
        if self.has(column) { self.bools(column) } else { Ok(Vec::new()) }
    }

    /// As [`bools_if_there`](Self::bools_if_there).
    pub(super) fn u32s_if_there(&self, column: &'static str) -> Result<Vec<u32>, ReadError> {
        if self.has(column) { self.u32s(column) } else { Ok(Vec::new()) }
    }

    /// As [`bools_if_there`](Self::bools_if_there).
    pub(super) fn optional_u32s_if_there(&self, column: &'static str) -> Result<Vec<Option<u32>>, ReadError> {
        if self.has(column) { self.optional_u32s(column) } else { Ok(Vec::new()) }
    }

    fn has(&self, column: &str) -> bool {
        let columns = self.file.metadata().file_metadata().schema_descr().columns();
        columns.iter().any(|described| described.path().string() == column)
    }

    pub(super) fn u32s(&self, column: &'static str) -> Result<Vec<u32>, ReadError> {
        Ok(self.all::<Int32Type>(column)?.into_iter().map(i32::cast_unsigned).collect())
    }

    pub(super) fn u64s(&self, column: &'static str) -> Result<Vec<u64>, ReadError> {
        Ok(self.all::<Int64Type>(column)?.into_iter().map(i64::cast_unsigned).collect())
    }

    pub(super) fn optional_u32s(&self, column: &'static str) -> Result<Vec<Option<u32>>, ReadError> {
        let values = self.optional::<Int32Type>(column)?;
        Ok(values.into_iter().map(|value| value.map(i32::cast_unsigned)).collect())
    }

    pub(super) fn optional_u64s(&self, column: &'static str) -> Result<Vec<Option<u64>>, ReadError> {
        let values = self.optional::<Int64Type>(column)?;
        Ok(values.into_iter().map(|value| value.map(i64::cast_unsigned)).collect())
    }

    pub(super) fn texts(&self, column: &'static str) -> Result<Vec<ByteArray>, ReadError> {
        self.all::<ByteArrayType>(column)
    }

    pub(super) fn optional_bytes(&self, column: &'static str) -> Result<Vec<Option<ByteArray>>, ReadError> {
        self.optional::<ByteArrayType>(column)
    }

    /// Returns the text of a value, charged as if it were copied.
    pub(super) fn text<'v>(
        &self,
        column: &'static str,
        row: usize,
        value: &'v ByteArray,
    ) -> Result<&'v str, ReadError> {
        self.budget.charge(self.name, value.len() as u64, 1)?;
        value.as_utf8().map_err(|_| self.bad(column, row, "not UTF-8"))
    }

    fn all<T: DataType>(&self, column: &'static str) -> Result<Vec<T::T>, ReadError> {
        let (values, levels) = self.read::<T>(column)?;
        match levels.iter().position(|&level| level == 0) {
            Some(row) => Err(self.bad(column, row, "null")),
            None if values.len() as u64 != self.rows => Err(self.bad(column, values.len(), "value missing")),
            None => Ok(values),
        }
    }

    fn optional<T: DataType>(&self, column: &'static str) -> Result<Vec<Option<T::T>>, ReadError> {
        let (values, levels) = self.read::<T>(column)?;
        let levels = if levels.is_empty() { vec![1; values.len()] } else { levels };
        if levels.len() as u64 != self.rows {
            return Err(self.bad(column, levels.len(), "value missing"));
        }
        let mut values = values.into_iter();
        let mut all = Vec::with_capacity(levels.len());
        for (row, &level) in levels.iter().enumerate() {
            all.push(match level {
                0 => None,
                _ => Some(values.next().ok_or_else(|| self.bad(column, row, "value missing"))?),
            });
        }
        Ok(all)
    }

    /// Reads the non-null values, and for an optional column a level for each row: 0 for null.
    fn read<T: DataType>(&self, column: &'static str) -> Result<(Vec<T::T>, Vec<i16>), ReadError> {
        let index = self.column_index::<T>(column)?;
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        for number in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(number).map_err(|error| self.damaged(column, &error))?;
            let chunk = group.metadata().columns().get(index);
            let chunk = chunk.ok_or_else(|| self.damaged(column, &"it is missing in a row group"))?;
            let unpacked = unpacked_bytes(&self.bytes, chunk).map_err(|what| self.damaged(column, &what))?;
            self.budget.charge(self.name, unpacked, 1)?;
            let rows = group.metadata().num_rows().cast_unsigned();
            let found = guarded(|| {
                let reader = group.get_column_reader(index).map_err(|error| self.damaged(column, &error))?;
                let mut reader = get_typed_column_reader::<T>(reader);
                self.read_group(column, &mut reader, rows, &mut values, &mut levels)
            })
            .map_err(|what| self.damaged(column, &what))??;
            if found != rows {
                return Err(self.bad(column, values.len(), format!("{found} of {rows} rows are there")));
            }
        }
        Ok((values, levels))
    }

    /// Reads one group's values and returns the number of rows.
    fn read_group<T: DataType>(
        &self,
        column: &'static str,
        reader: &mut ColumnReaderImpl<T>,
        rows: u64,
        values: &mut Vec<T::T>,
        levels: &mut Vec<i16>,
    ) -> Result<u64, ReadError> {
        let mut found = 0_u64;
        while found < rows {
            let step = STEP.min(usize::try_from(rows - found).unwrap_or(STEP));
            self.budget.charge(self.name, step as u64, size_of::<T::T>() as u64 + 2)?;
            let (read, _, _) = reader
                .read_records(step, Some(levels), None, values)
                .map_err(|error| self.damaged(column, &error))?;
            if read == 0 {
                break;
            }
            found = found.saturating_add(read as u64);
        }
        Ok(found)
    }

    /// Returns the column's index in the schema, after checking that it is flat and of the expected type.
    fn column_index<T: DataType>(&self, column: &'static str) -> Result<usize, ReadError> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let fits = |described: &ColumnDescriptor| {
            described.physical_type() == T::get_physical_type()
                && described.max_rep_level() == 0
                && described.max_def_level() <= 1
        };
        let found = schema.columns().iter().position(|described| described.path().string() == column);
        let index = found.ok_or_else(|| self.bad(column, 0, "there is no such column"))?;
        match fits(&schema.column(index)) {
            true => Ok(index),
            false => Err(self.bad(column, 0, "the column is not of the type it should be")),
        }
    }

    fn damaged(&self, column: &str, error: &dyn Display) -> ReadError {
        entry_error(self.name, self.offset, format!("column {column}: {error}"))
    }
}

/// Returns the decompressed size that the pages of a column chunk claim, or the error in them. Recordings have no pages that need a
/// second check once they are decompressed.
fn unpacked_bytes(table: &Bytes, chunk: &ColumnChunkMetaData) -> Result<u64, &'static str> {
    let mut unpacked = 0_u64;
    check_pages(table, chunk, None, |page| {
        unpacked = unpacked.saturating_add(page.unpacked);
        match page.encoding {
            DELTA_BYTE_ARRAY => Err("an encoding that recordings do not use"),
            _ => Ok(()),
        }
    })?;
    Ok(unpacked)
}

fn entry_error(table: &str, offset: u64, message: String) -> ReadError {
    ReadError::Entry { entry: format!("{table}.parquet"), offset: Some(offset), message }
}
