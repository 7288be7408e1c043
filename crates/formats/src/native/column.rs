//! Columns being written: values of one type, and their encoding.

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};

/// The encoding of a column's values before compression. Only encodings that Parquet readers have long supported:
/// BYTE_STREAM_SPLIT of integers would save 5% more, but is too new for many.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Few distinct values.
    Dictionary,
    /// Differences between neighbours, bit-packed.
    Delta,
    /// Not encoded.
    Plain,
}

impl Packing {
    pub(super) fn encoding(self) -> Option<Encoding> {
        match self {
            Packing::Dictionary => None,
            Packing::Delta => Some(Encoding::DELTA_BINARY_PACKED),
            Packing::Plain => Some(Encoding::PLAIN),
        }
    }
}

/// The non-null values.
pub(super) enum Values {
    Bool(Vec<bool>),
    U32(Vec<i32>),
    U64(Vec<i64>),
    Text(Vec<ByteArray>),
    Bytes(Vec<ByteArray>),
}

/// A column of a table.
pub(super) struct Column {
    pub name: &'static str,
    pub packing: Packing,
    pub values: Values,
    /// For an optional column, 1 for each row with a value and 0 for each without.
    pub levels: Option<Vec<i16>>,
}

impl Column {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        match (&self.levels, &self.values) {
            (Some(levels), _) => levels.len(),
            (None, Values::Bool(values)) => values.len(),
            (None, Values::U32(values)) => values.len(),
            (None, Values::U64(values)) => values.len(),
            (None, Values::Text(values) | Values::Bytes(values)) => values.len(),
        }
    }

    pub(super) fn physical(&self) -> Physical {
        match self.values {
            Values::Bool(_) => Physical::BOOLEAN,
            Values::U32(_) => Physical::INT32,
            Values::U64(_) => Physical::INT64,
            Values::Text(_) | Values::Bytes(_) => Physical::BYTE_ARRAY,
        }
    }

    /// Returns the column's entry in the table's schema.
    pub(super) fn field(&self) -> Result<TypePtr> {
        let unsigned = |bit_width| Some(LogicalType::integer(bit_width, false));
        let logical = match self.values {
            Values::U32(_) => unsigned(32),
            Values::U64(_) => unsigned(64),
            Values::Text(_) => Some(LogicalType::String),
            Values::Bool(_) | Values::Bytes(_) => None,
        };
        let repetition = if self.levels.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(self.name, self.physical())
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()?;
        Ok(field.into())
    }

    pub(super) fn write(&self, out: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.levels.as_deref();
        match &self.values {
            Values::Bool(values) => out.typed::<BoolType>().write_batch(values, levels, None)?,
            Values::U32(values) => out.typed::<Int32Type>().write_batch(values, levels, None)?,
            Values::U64(values) => out.typed::<Int64Type>().write_batch(values, levels, None)?,
            Values::Text(values) | Values::Bytes(values) => {
                out.typed::<ByteArrayType>().write_batch(values, levels, None)?
            }
        };
        Ok(())
    }
}
