//! The zip archive around the tables: its directory, entries as bytes, and the limit of their decompressed size.

use std::io::{Read, Seek, SeekFrom};
use std::rc::Rc;

use bytes::Bytes;
use plumb_profile::Meta;
use zip::ZipArchive;
use zip::result::ZipError;

use super::error::ReadError;
use super::values::{Budget, TableReader};
use crate::native::meta::{Envelope, FORMAT, MetaFile};
use crate::native::version::NEWEST;

/// Decompressed size allowed for any recording, however small.
const FLOOR: u64 = 64 << 20;

/// Additional decompressed size allowed per byte of a recording. Samples, the densest table, take a byte each even if
/// everything but their time repeats, and 36 decompressed.
const EXPANSION: u64 = 256;

/// An opened archive.
pub(super) struct Archive<R> {
    zip: ZipArchive<R>,
    budget: Rc<Budget>,
}

/// Returns the limit for an input of `size` bytes.
pub(super) fn budget(size: u64) -> Rc<Budget> {
    Rc::new(Budget::new(FLOOR.saturating_add(size.saturating_mul(EXPANSION))))
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory. From here on the tables may take at most [`FLOOR`] plus [`EXPANSION`] times the input's size in
    /// memory.
    pub(super) fn open(mut input: R) -> Result<Self, ReadError> {
        let size = input.seek(SeekFrom::End(0)).map_err(|error| ReadError::Input { error })?;
        Self::open_within(input, size, budget(size))
    }

    /// Opens an archive of `size` bytes that is a part of an input; all parts share `budget`.
    pub(super) fn open_within(input: R, size: u64, budget: Rc<Budget>) -> Result<Self, ReadError> {
        let zip = ZipArchive::new(input).map_err(|error| match error {
            ZipError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
                ReadError::Input { error }
            }
            error => ReadError::NoDirectory { size, message: error.to_string() },
        })?;
        Ok(Archive { zip, budget })
    }

    /// Checks the format's version and reads the metadata.
    pub(super) fn meta(&mut self) -> Result<(Meta, (u32, u32)), ReadError> {
        let entry = "meta.json";
        let (bytes, offset) = self
            .entry(entry)?
            .ok_or_else(|| ReadError::NotARecording { message: format!("the archive has no {entry}") })?;
        let damaged = |error: serde_json::Error| ReadError::Entry {
            entry: entry.into(),
            offset: Some(offset),
            message: error.to_string(),
        };
        let Envelope { format, version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if format != FORMAT {
            return Err(ReadError::NotARecording { message: format!("{entry} says it is a {format:?}") });
        }
        if version.major > NEWEST.0 {
            return Err(ReadError::Newer { found: (version.major, version.minor), known: NEWEST });
        }
        let file: MetaFile = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok((file.into_meta(), (version.major, version.minor)))
    }

    /// Opens the table called `name`.
    pub(super) fn table(&mut self, name: &'static str) -> Result<TableReader<'_>, ReadError> {
        match self.entry(&format!("{name}.parquet"))? {
            Some((bytes, offset)) => TableReader::open(name, bytes, offset, &self.budget),
            None => Err(ReadError::Entry {
                entry: format!("{name}.parquet"),
                offset: None,
                message: "it is missing".into(),
            }),
        }
    }

    /// Opens the table called `name`, which recordings of older versions lack.
    pub(super) fn table_if_there(
        &mut self,
        name: &'static str,
    ) -> Result<Option<TableReader<'_>>, ReadError> {
        match self.entry(&format!("{name}.parquet"))? {
            Some((bytes, offset)) => TableReader::open(name, bytes, offset, &self.budget).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the bytes of an entry and their offset in the file; `None` without such an entry. The archive's
    /// checksum has been verified.
    fn entry(&mut self, name: &str) -> Result<Option<(Bytes, u64)>, ReadError> {
        let damaged = |offset, message| ReadError::Entry { entry: name.into(), offset, message };
        let mut file = match self.zip.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(damaged(None, error.to_string())),
        };
        let offset = file.data_start();
        let size = file.size();
        if size > self.budget.left() {
            return Err(damaged(offset, format!("it claims {size} bytes")));
        }
        // Nothing is allocated for a size that is only claimed.
        let mut bytes = Vec::new();
        file.by_ref()
            .take(size)
            .read_to_end(&mut bytes)
            .and_then(|_| file.read(&mut [0]))
            .map_err(|error| damaged(offset, error.to_string()))?;
        Ok(Some((bytes.into(), offset.unwrap_or(0))))
    }
}
