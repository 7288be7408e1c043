//! Errors in a perf.data file as a whole, or in parts of it.

use std::fmt;

/// The reason why nothing of a perf.data file could be read. Later errors are counted in [`Loss`] instead.
#[derive(Debug)]
pub enum PerfDataError {
    /// The input could not be read.
    Input {
        /// Offset in the file.
        offset: u64,
        /// The input's error.
        error: std::io::Error,
    },
    /// The file does not begin like a perf.data file.
    NotPerfData,
    /// The file ends or is invalid before the descriptions of its events.
    Header {
        /// Offset in the file.
        offset: u64,
        /// The error.
        message: String,
    },
}

impl fmt::Display for PerfDataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerfDataError::Input { offset, error } => write!(f, "at offset {offset}: {error}"),
            PerfDataError::NotPerfData => {
                f.write_str("not a perf.data file: it does not begin with PERFILE2")
            }
            PerfDataError::Header { offset, message } => {
                write!(f, "the perf.data header is damaged at offset {offset}: {message}")
            }
        }
    }
}

impl std::error::Error for PerfDataError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PerfDataError::Input { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Largest number of warnings kept as text; further ones are only counted.
const WARNINGS: usize = 10;

/// The data that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Number of records left out because they are damaged or truncated.
    pub damaged_records: u64,
    /// The errors, with offsets, one sentence each. Only the first few; see [`Loss::more_warnings`].
    pub warnings: Vec<String>,
    /// Number of warnings that are not in [`Loss::warnings`].
    pub more_warnings: u64,
    /// The file that is being read, if there are several, and `: `.
    file: String,
}

impl Loss {
    /// Names the file that later warnings are about.
    pub(super) fn in_file(&mut self, name: &str) {
        if self.file.strip_suffix(": ").unwrap_or_default() != name {
            self.file = if name.is_empty() { String::new() } else { format!("{name}: ") };
        }
    }

    pub(super) fn warn(&mut self, warning: String) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    /// Counts a record that is left out.
    pub(super) fn damaged(&mut self, offset: u64, message: &str) {
        self.damaged_records += 1;
        self.warn(format!("{}at offset {offset}: {message}", self.file));
    }
}
