//! Writes a recording.

use std::io::{Seek, Write};

use plumb_profile::Profile;

/// Why a recording could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output did not take it.
    Io(std::io::Error),
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

/// Writes `profile` as a recording. The file is readable once this has returned, not before.
pub fn write<W: Write + Seek>(_profile: &Profile, _out: W) -> Result<(), WriteError> {
    Err(WriteError::Io(std::io::ErrorKind::Unsupported.into()))
}
