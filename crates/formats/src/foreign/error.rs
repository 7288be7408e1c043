//! The reasons why a foreign profile could not be read, with positions.

use std::fmt;

/// The reason why a foreign profile could not be read. Positions refer to the decompressed file; the caller knows the file's name.
#[derive(Debug)]
pub enum ForeignError {
    /// The format is unknown.
    Unknown {
        /// Description of what the content looks like.
        looks: &'static str,
    },
    /// The compressed data is damaged or truncated.
    Packed {
        /// The compression format.
        format: &'static str,
        /// Number of bytes that could be decompressed.
        offset: u64,
        /// The error.
        error: std::io::Error,
    },
    /// The compressed data expands to more than a profile of this size can need.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The text is not JSON, or violates the format.
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The error.
        message: String,
    },
    /// The bytes are not a protocol buffer message of this kind.
    Message {
        /// Offset of the field.
        offset: usize,
        /// The error.
        message: String,
    },
    /// The bytes are not a JFR file as written by the JDK or async-profiler.
    Jfr {
        /// Offset of the error.
        offset: usize,
        /// The error.
        message: String,
    },
    /// A line of text violates the format.
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The error.
        message: &'static str,
    },
    /// A row of a table is invalid.
    Row {
        /// The table, as named by the format.
        table: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// The error.
        message: String,
    },
    /// The file has a newer version of the format than is supported.
    Newer {
        /// The file's version.
        found: u64,
        /// The newest version supported.
        known: u64,
    },
}

impl fmt::Display for ForeignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForeignError::Unknown { looks } => f.write_str(looks),
            ForeignError::Packed { format, offset, error } => {
                write!(f, "the {format} data are damaged or cut off, {offset} bytes after unpacking: {error}")
            }
            ForeignError::TooLarge { limit } => {
                write!(f, "it unpacks to more than {limit} bytes, which no profile of this size needs")
            }
            ForeignError::Json { line, column, message } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            ForeignError::Message { offset, message } => {
                write!(f, "pprof's message is damaged at offset {offset}: {message}")
            }
            ForeignError::Jfr { offset, message } => {
                write!(f, "the JFR file is damaged at offset {offset}: {message}")
            }
            ForeignError::Line { line, message } => write!(f, "line {line}: {message}"),
            ForeignError::Row { table, row, message } => write!(f, "row {row} of {table}: {message}"),
            ForeignError::Newer { found, known } => write!(
                f,
                "version {found} of the format; this plumb reads up to {known}: please update plumb"
            ),
        }
    }
}

impl std::error::Error for ForeignError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ForeignError::Packed { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<serde_json::Error> for ForeignError {
    fn from(error: serde_json::Error) -> Self {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string().replace(&place, "");
        ForeignError::Json { line: error.line(), column: error.column(), message }
    }
}
