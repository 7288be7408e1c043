//! Reads a recording.

use std::io::{Read, Seek};

use plumb_profile::Profile;

/// Why a recording could not be read. Says where in the archive; the caller knows the file's name.
#[derive(Debug)]
pub enum ReadError {
    /// Not built yet.
    Unfinished,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("reading recordings is not built yet")
    }
}

impl std::error::Error for ReadError {}

/// Reads a recording that [`write`](super::write) wrote.
pub fn read<R: Read + Seek>(_input: R) -> Result<Profile, ReadError> {
    Err(ReadError::Unfinished)
}
