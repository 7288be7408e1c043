//! What can be wrong with a perf.data file: all of it, or parts.

use std::fmt;

/// Why nothing of a perf.data file could be read. What goes wrong later is counted in [`Loss`] instead.
#[derive(Debug)]
pub enum ReadError {
    /// The input could not be read.
    Input {
        /// Where.
        offset: u64,
        /// What the input said.
        error: std::io::Error,
    },
    /// It does not begin as perf.data files do.
    NotPerfData,
    /// The file ends, or says something that can't be, before its events are described.
    Header {
        /// Where.
        offset: u64,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Input { offset, error } => write!(f, "at offset {offset}: {error}"),
            ReadError::NotPerfData => f.write_str("not a perf.data file: it does not begin with PERFILE2"),
            ReadError::Header { offset, message } => {
                write!(f, "the perf.data header is damaged at offset {offset}: {message}")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Input { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Warnings that are kept word for word; more are only counted.
const WARNINGS: usize = 10;

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records that were left out because they are damaged or cut off.
    pub damaged_records: u64,
    /// What was wrong, with offsets, one sentence each. Only the first few; see [`Loss::more_warnings`].
    pub warnings: Vec<String>,
    /// How many warnings are not in [`Loss::warnings`].
    pub more_warnings: u64,
}

impl Loss {
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
        self.warn(format!("at offset {offset}: {message}"));
    }
}
