//! Writes one table of a block: columns of values, one row group at a time.

use bytes::Bytes;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedFileWriter;

use super::schema::BlockTable;

/// Values of a column in a row group.
pub(crate) enum Values<'v> {
    I32(&'v [i32]),
    I64(&'v [i64]),
    Bool(&'v [bool]),
    Text(Vec<ByteArray>),
    /// Values of lists, and the length of each list.
    I32Lists(&'v [i32], &'v [usize]),
    TextLists(Vec<ByteArray>, &'v [usize]),
}

/// Strings of a column.
pub(crate) fn texts<'t>(texts: impl Iterator<Item = &'t str>) -> Values<'t> {
    Values::Text(texts.map(ByteArray::from).collect())
}

/// Writer of a table, in memory.
pub(crate) struct TableWriter(SerializedFileWriter<Vec<u8>>);

impl TableWriter {
    pub fn new(table: BlockTable, level: i32) -> Result<Self> {
        Self::with_pages(table, level, 1)
    }

    /// A writer with pages so small that a part, of which the table has this number, doesn't take many more rows.
    pub fn with_pages(table: BlockTable, level: i32, parts: usize) -> Result<Self> {
        SerializedFileWriter::new(Vec::new(), table.schema()?, table.properties(level, parts)?).map(Self)
    }

    /// Writes a row group, with all columns in schema order.
    pub fn group(&mut self, columns: &[Values<'_>]) -> Result<()> {
        let mut group = self.0.next_row_group()?;
        for values in columns {
            let too_many = || ParquetError::General("more columns than the table has".into());
            let mut column = group.next_column()?.ok_or_else(too_many)?;
            match values {
                Values::I32(values) => column.typed::<Int32Type>().write_batch(values, None, None)?,
                Values::I64(values) => column.typed::<Int64Type>().write_batch(values, None, None)?,
                Values::Bool(values) => column.typed::<BoolType>().write_batch(values, None, None)?,
                Values::Text(values) => column.typed::<ByteArrayType>().write_batch(values, None, None)?,
                Values::I32Lists(values, lengths) => {
                    let (there, begins) = levels(lengths);
                    column.typed::<Int32Type>().write_batch(values, Some(&there), Some(&begins))?
                }
                Values::TextLists(values, lengths) => {
                    let (there, begins) = levels(lengths);
                    column.typed::<ByteArrayType>().write_batch(values, Some(&there), Some(&begins))?
                }
            };
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    pub fn finish(self) -> Result<Bytes> {
        self.0.into_inner().map(Bytes::from)
    }
}

/// Definition and repetition levels of lists: for each value whether it exists and whether it continues a list. An empty list has one entry without a
/// value.
fn levels(lengths: &[usize]) -> (Vec<i16>, Vec<i16>) {
    let values: usize = lengths.iter().map(|&length| length.max(1)).sum();
    let (mut there, mut begins) = (Vec::with_capacity(values), Vec::with_capacity(values));
    for &length in lengths {
        there.extend(std::iter::repeat_n(i16::from(length > 0), length.max(1)));
        begins.push(0);
        begins.extend(std::iter::repeat_n(1, length.saturating_sub(1)));
    }
    (there, begins)
}
