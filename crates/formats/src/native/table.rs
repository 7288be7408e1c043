//! A table being written: columns of equal length become a Parquet file, with one row group or several.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::column::{Column, Packing, Values};

/// Level 9 would make recordings 2 to 4% smaller, and take four times as long at the end of a recording.
const ZSTD_LEVEL: i32 = 3;

/// Pages are limited by [`PAGE_BYTES`], not by a number of rows.
const PAGE_ROWS: usize = 1 << 20;
const PAGE_BYTES: usize = 1 << 20;

/// A table being filled, column by column.
#[derive(Default)]
pub(super) struct TableWriter {
    columns: Vec<Column>,
}

impl TableWriter {
    fn add(mut self, name: &'static str, packing: Packing, values: Values, levels: Option<Vec<i16>>) -> Self {
        self.columns.push(Column { name, packing, values, levels });
        self
    }

    pub(super) fn bools(self, name: &'static str, values: impl Iterator<Item = bool>) -> Self {
        self.add(name, Packing::Plain, Values::Bool(values.collect()), None)
    }

    pub(super) fn u32s(
        self,
        name: &'static str,
        packing: Packing,
        values: impl Iterator<Item = u32>,
    ) -> Self {
        self.add(name, packing, Values::U32(values.map(u32::cast_signed).collect()), None)
    }

    pub(super) fn u64s(
        self,
        name: &'static str,
        packing: Packing,
        values: impl Iterator<Item = u64>,
    ) -> Self {
        self.add(name, packing, Values::U64(values.map(u64::cast_signed).collect()), None)
    }

    pub(super) fn optional_u32s(
        self,
        name: &'static str,
        packing: Packing,
        values: impl Iterator<Item = Option<u32>>,
    ) -> Self {
        let (levels, values) = split(values);
        self.add(name, packing, Values::U32(values.into_iter().map(u32::cast_signed).collect()), Some(levels))
    }

    pub(super) fn optional_u64s(
        self,
        name: &'static str,
        packing: Packing,
        values: impl Iterator<Item = Option<u64>>,
    ) -> Self {
        let (levels, values) = split(values);
        self.add(name, packing, Values::U64(values.into_iter().map(u64::cast_signed).collect()), Some(levels))
    }

    pub(super) fn texts<'a>(
        self,
        name: &'static str,
        packing: Packing,
        values: impl Iterator<Item = &'a str>,
    ) -> Self {
        let values = match packing {
            Packing::Dictionary => shared(values),
            _ => values.map(ByteArray::from).collect(),
        };
        self.add(name, packing, Values::Text(values), None)
    }

    pub(super) fn optional_texts<'a>(
        self,
        name: &'static str,
        values: impl Iterator<Item = Option<&'a str>>,
    ) -> Self {
        let (levels, values) = split(values);
        self.add(name, Packing::Dictionary, Values::Text(shared(values.into_iter())), Some(levels))
    }

    pub(super) fn optional_bytes<'a>(
        self,
        name: &'static str,
        values: impl Iterator<Item = Option<&'a [u8]>>,
    ) -> Self {
        let (levels, values) = split(values);
        let values = values.into_iter().map(|bytes| ByteArray::from(bytes.to_vec())).collect();
        self.add(name, Packing::Plain, Values::Bytes(values), Some(levels))
    }

    /// Returns the bytes of the Parquet file.
    pub(super) fn finish(self) -> Result<Vec<u8>> {
        let mut file = TableFile::begin(&self, Vec::new())?;
        file.add(&self)?;
        file.finish()
    }

    fn properties(&self) -> Result<WriterProperties> {
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("plumb ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_data_page_size_limit(PAGE_BYTES);
        for column in &self.columns {
            let path = ColumnPath::from(column.name);
            let encoding = column.packing.encoding();
            properties = properties.set_column_dictionary_enabled(path.clone(), encoding.is_none());
            if let Some(encoding) = encoding {
                properties = properties.set_column_encoding(path, encoding);
            }
        }
        Ok(properties.build())
    }
}

/// A Parquet file with several row groups, added as tables with the same columns.
pub(super) struct TableFile<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> TableFile<W> {
    /// Starts a file of tables like `like`, without rows.
    pub(super) fn begin(like: &TableWriter, out: W) -> Result<Self> {
        let fields = like.columns.iter().map(Column::field).collect::<Result<_>>()?;
        let schema = Type::group_type_builder("row").with_fields(fields).build()?;
        Ok(Self(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(like.properties()?))?))
    }

    /// Adds the rows of a table.
    pub(super) fn add(&mut self, table: &TableWriter) -> Result<()> {
        let rows = table.columns.first().map_or(0, Column::rows);
        if table.columns.iter().any(|column| column.rows() != rows) {
            return Err(ParquetError::General("columns differ in length".into()));
        }
        let mut group = self.0.next_row_group()?;
        for column in &table.columns {
            let mut out = group
                .next_column()?
                .ok_or_else(|| ParquetError::General("fewer columns than the schema has".into()))?;
            column.write(&mut out)?;
            out.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Finishes the file.
    pub(super) fn finish(self) -> Result<W> {
        self.0.into_inner()
    }
}

/// Converts texts with few distinct values. Each value is in memory once.
fn shared<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<ByteArray> {
    let mut known: HashMap<&str, ByteArray> = HashMap::new();
    texts.map(|text| known.entry(text).or_insert_with(|| ByteArray::from(text)).clone()).collect()
}

/// Returns definition levels, and the values of the rows that have one.
fn split<T>(values: impl Iterator<Item = Option<T>>) -> (Vec<i16>, Vec<T>) {
    let mut present = Vec::with_capacity(values.size_hint().0);
    let levels = values.map(|value| i16::from(value.map(|value| present.push(value)).is_some())).collect();
    (levels, present)
}
