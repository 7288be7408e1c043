//! The tables of a block, in a form that other engines can read (docs/store.md describes them).
//!
//! Uses only types that all Parquet readers support: no unsigned integers, times in milliseconds. Samples are sorted by series, time and stack;
//! series by their labels; stacks and frames by service, those that several have first; then
//! stacks by their frames, outermost first, so that adjacent stacks share most of them, and frames by function.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

/// Rows of a row group, which is the unit of reading when only some series are requested.
pub(crate) const GROUP: usize = 1 << 17;

/// Fewest rows of a page, which is what is decompressed at once.
const LEAST_PAGE: usize = 1 << 10;
/// Most rows of a page.
const MOST_PAGE: usize = 20_000;
/// Values after which the writer sees whether a page is full.
const BATCH: usize = 1 << 10;

/// A table of a block. Each table is a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum BlockTable {
    Series,
    Profiles,
    Samples,
    Stacks,
    Frames,
    Hours,
}

impl BlockTable {
    /// File name.
    pub fn file(self) -> &'static str {
        match self {
            Self::Series => "series.parquet",
            Self::Profiles => "profiles.parquet",
            Self::Samples => "samples.parquet",
            Self::Stacks => "stacks.parquet",
            Self::Frames => "frames.parquet",
            Self::Hours => "hours.parquet",
        }
    }

    fn columns(self) -> &'static str {
        match self {
            Self::Series => {
                "required int32 series;
                 required binary profile_type (STRING);
                 required binary service_name (STRING);
                 required group labels (MAP) {
                   repeated group key_value {
                     required binary key (STRING);
                     required binary value (STRING);
                   }
                 }"
            }
            Self::Profiles => {
                "required int32 series;
                 required int64 ts (TIMESTAMP(MILLIS,true));
                 required int32 samples;
                 required int64 total;"
            }
            Self::Samples | Self::Hours => {
                "required int32 series;
                 required int64 ts (TIMESTAMP(MILLIS,true));
                 required int32 stack;
                 required int64 value;"
            }
            Self::Stacks => {
                "required int32 stack;
                 required int64 hash;
                 required group frames (LIST) {
                   repeated group list {
                     required int32 element;
                   }
                 }"
            }
            Self::Frames => {
                "required int32 frame;
                 required binary function (STRING);
                 required binary system_name (STRING);
                 required binary file (STRING);
                 required int32 line;
                 required int32 start_line;
                 required binary mapping (STRING);
                 required binary build_id (STRING);
                 required int64 address;
                 required boolean file_offset;
                 required boolean inlined;"
            }
        }
    }

    pub fn schema(self) -> Result<TypePtr> {
        let name = self.file().trim_end_matches(".parquet");
        Ok(Arc::new(parse_message_type(&format!("message {name} {{ {} }}", self.columns()))?))
    }

    /// Properties of a table whose readers need one of its `parts` parts, of similar size.
    ///
    /// Encoding of the columns: deltas for slowly changing values, dictionaries for repeated ones, plain otherwise.
    pub fn properties(self, level: i32, parts: usize) -> Result<WriterPropertiesPtr> {
        let rows = (GROUP / parts.max(1)).clamp(LEAST_PAGE, MOST_PAGE);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
            .set_created_by("plumb".to_owned())
            .set_data_page_row_count_limit(rows)
            .set_write_batch_size(rows.min(BATCH))
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(GROUP));
        let (near, repeated, shared): (&[&str], &[&str], &[&str]) = match self {
            Self::Series => (&["series"], &["profile_type", "service_name"], &[]),
            Self::Profiles => (&["series", "ts"], &[], &[]),
            Self::Samples | Self::Hours => (&["stack"], &["series", "ts", "value"], &[]),
            Self::Stacks => (&["stack"], &[], &[]),
            Self::Frames => (&["frame"], &["mapping", "build_id"], &["function", "system_name", "file"]),
        };
        for &column in near {
            properties =
                properties.set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BINARY_PACKED);
        }
        for &column in repeated {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(column), true);
        }
        for &column in shared {
            properties = properties.set_column_encoding(ColumnPath::from(column), Encoding::DELTA_BYTE_ARRAY);
        }
        Ok(Arc::new(properties.build()))
    }
}
