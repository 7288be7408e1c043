//! The reasons why a recording could not be read, with positions.

use std::fmt;

/// The reason why a recording could not be read. Positions refer to the archive; the caller knows the file's name.
#[derive(Debug)]
pub enum ReadError {
    /// The input could not be read.
    Input {
        /// The input's error.
        error: std::io::Error,
    },
    /// The archive has no usable directory at its end: it is truncated, or not an archive.
    NoDirectory {
        /// Size of the input in bytes.
        size: u64,
        /// The error.
        message: String,
    },
    /// An archive, but not a recording of plumb's.
    NotARecording {
        /// The missing or unexpected part.
        message: String,
    },
    /// The recording was written by a newer plumb in an unknown format.
    Newer {
        /// The file's format version: major, minor.
        found: (u32, u32),
        /// The newest version supported.
        known: (u32, u32),
    },
    /// An entry of the archive is damaged.
    Entry {
        /// The entry, such as `samples.parquet`.
        entry: String,
        /// Offset of the entry's data in the file, if known.
        offset: Option<u64>,
        /// The error.
        message: String,
    },
    /// A table has an invalid value.
    Row {
        /// The table, such as `samples`.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row, counted from 0.
        row: u64,
        /// The error.
        message: String,
    },
    /// An unfinished recording that ends before any complete segment.
    NothingWhole {
        /// Size of the input in bytes.
        size: u64,
    },
    /// The tables would take more memory than a recording of this size can need.
    TooLarge {
        /// The table that exceeded the limit.
        table: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Input { error } => error.fmt(f),
            ReadError::NoDirectory { size, message } => write!(
                f,
                "the archive's directory, which should end at offset {size}, is missing or damaged ({message}): \
                 the recording was cut off"
            ),
            ReadError::NotARecording { message } => write!(f, "not a plumb recording: {message}"),
            ReadError::Newer { found, known } => write!(
                f,
                "written by a newer plumb, in format {}.{}; this plumb reads up to {}.x: please update plumb",
                found.0, found.1, known.0
            ),
            ReadError::Entry { entry, offset: Some(offset), message } => {
                write!(f, "{entry} (at offset {offset}) is damaged: {message}")
            }
            ReadError::Entry { entry, offset: None, message } => write!(f, "{entry} is damaged: {message}"),
            ReadError::Row { table, column, row, message } => {
                write!(f, "{table}.parquet is damaged: row {row}, column {column}: {message}")
            }
            ReadError::NothingWhole { size } => write!(
                f,
                "a recording that was not finished, and of its {size} bytes no segment is whole: nothing of it can be read"
            ),
            ReadError::TooLarge { table, limit } => {
                write!(
                    f,
                    "{table}.parquet unpacks to more than {limit} bytes, which no recording of this size needs"
                )
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Input { error } => Some(error),
            _ => None,
        }
    }
}
