//! Why a foreign profile could not be read, and where.

use std::fmt;

/// Why a foreign profile could not be read. Says where in the file, as it is once unpacked; the caller knows the file's name.
#[derive(Debug)]
pub enum ReadError {
    /// It is none of the formats that are known.
    Unknown {
        /// What it looks like.
        looks: &'static str,
    },
    /// The compressed data are damaged or cut off.
    Packed {
        /// The compression format.
        format: &'static str,
        /// How many bytes could be unpacked.
        offset: u64,
        /// What is wrong.
        error: std::io::Error,
    },
    /// The compressed data unpack to more than a profile of this size can need.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The text is not JSON, or not what the format wants there.
    Json {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// The bytes are no protocol buffer message of this kind.
    Message {
        /// Where the field begins.
        offset: usize,
        /// What is wrong.
        message: String,
    },
    /// The bytes are no JFR file as the JDK or async-profiler write it.
    Jfr {
        /// Where what is wrong begins.
        offset: usize,
        /// What is wrong.
        message: String,
    },
    /// A line of text is not as the format has it.
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        message: &'static str,
    },
    /// A row of a table says something that can't be.
    Row {
        /// The table, in the format's own words.
        table: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// What is wrong.
        message: String,
    },
    /// Written in a newer version of the format than is known.
    Newer {
        /// The file's version.
        found: u64,
        /// The newest that is understood.
        known: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Unknown { looks } => f.write_str(looks),
            ReadError::Packed { format, offset, error } => {
                write!(f, "the {format} data are damaged or cut off, {offset} bytes after unpacking: {error}")
            }
            ReadError::TooLarge { limit } => {
                write!(f, "it unpacks to more than {limit} bytes, which no profile of this size needs")
            }
            ReadError::Json { line, column, message } => write!(f, "line {line}, column {column}: {message}"),
            ReadError::Message { offset, message } => {
                write!(f, "pprof's message is damaged at offset {offset}: {message}")
            }
            ReadError::Jfr { offset, message } => {
                write!(f, "the JFR file is damaged at offset {offset}: {message}")
            }
            ReadError::Line { line, message } => write!(f, "line {line}: {message}"),
            ReadError::Row { table, row, message } => write!(f, "row {row} of {table}: {message}"),
            ReadError::Newer { found, known } => write!(
                f,
                "version {found} of the format; this plumb reads up to {known}: please update plumb"
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Packed { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string().replace(&place, "");
        ReadError::Json { line: error.line(), column: error.column(), message }
    }
}
