//! One thing to mend.

use std::fmt;
use std::path::PathBuf;

/// One thing to mend.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// File, relative to the repository.
    pub file: PathBuf,
    /// Line, counted from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.what),
        }
    }
}
