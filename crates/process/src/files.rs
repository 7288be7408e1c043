//! The table of mapped files, each opened once.
//!
//! A file is recognized by the data of its mappings, so that the thousandth process of a program opens nothing, and
//! again by the data of the opened file, so that two descriptions of one file share a row. Files are opened when
//! first seen, because short-lived processes and replaced programs vanish; their sections are read on
//! demand.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::elf::{Elf, ElfError, FileOffset, UnwindSections};
use crate::identity::FileKey;
use crate::open::{FileOrigin, OpenError, open_mapped};

/// Largest number of open descriptors. Beyond that, sections are read at once and the file is closed.
const MAX_OPEN: usize = 400;
/// Number of open descriptors from which those of unused files are closed.
const FEW_OPEN: usize = 300;
/// Largest number of descriptors kept open after the sections were read, for [`Files::vanished`].
const MAX_HELD: usize = 200;
/// Number of attempts to open a file that fails, one per process that maps it.
const MAX_ATTEMPTS: u8 = 4;

/// A file of a [`Files`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

impl FileId {
    #[cfg(test)]
    pub(crate) const TEST: FileId = FileId(0);

    /// Returns the row number, for parallel tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file that was seen mapped.
#[derive(Debug)]
pub struct MappedFile {
    key: FileKey,
    content: Result<Content, OpenError>,
    attempts: u8,
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Content {
    elf: Result<Elf, ElfError>,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Open(File),
    Read(Box<UnwindSections>),
    /// The sections were taken by the caller.
    Taken(Option<File>),
    /// No process maps the file any more ([`Files::close`]).
    Closed,
}

impl Bytes {
    fn file(&self) -> Option<&File> {
        match self {
            Bytes::Open(file) | Bytes::Taken(Some(file)) => Some(file),
            Bytes::Read(_) | Bytes::Taken(None) | Bytes::Closed => None,
        }
    }
}

impl MappedFile {
    /// Returns the key that its mappings have in common.
    pub fn key(&self) -> &FileKey {
        &self.key
    }

    /// Returns why it cannot be read, if so.
    pub fn unreadable(&self) -> Option<OpenError> {
        self.content.as_ref().err().copied()
    }

    /// Returns its headers, if it could be opened and is an ELF file.
    pub fn elf(&self) -> Option<&Elf> {
        self.content.as_ref().ok()?.elf.as_ref().ok()
    }

    /// Returns the address, as stated in the file, of the byte at `offset`.
    pub fn stated(&self, offset: FileOffset) -> Option<u64> {
        self.elf()?.stated(offset)
    }

    /// Fills `to` with the bytes from `offset` on, up to the end of the file, and returns their number. `None` if the file is neither
    /// open nor still at its path.
    pub fn read_up_to(&self, offset: FileOffset, to: &mut [u8]) -> Option<usize> {
        match self.open_file() {
            Some(file) => file.read_at(to, offset.0).ok(),
            None => self.open_again()?.read_at(to, offset.0).ok(),
        }
    }

    /// Returns the file, if it is still open.
    pub fn open_file(&self) -> Option<&File> {
        self.content.as_ref().ok()?.bytes.file()
    }

    /// Whether sections that were taken can be taken again, because the file is open or still at its path: then the owner may
    /// drop them.
    pub fn can_be_read_again(&self) -> bool {
        self.open_file().is_some() || self.open_again().is_some()
    }

    fn is_closed(&self) -> bool {
        self.content.as_ref().is_ok_and(|content| matches!(content.bytes, Bytes::Closed))
    }

    /// Reopens the file by its path, if that is still the same file.
    fn open_again(&self) -> Option<File> {
        let path = Path::new(OsStr::from_bytes(&self.key.path));
        // Checked before opening: opening anything but a regular file may have side effects.
        std::fs::metadata(path).ok().filter(|meta| meta.is_file() && Some(identity(meta)) == self.opened)?;
        let file = File::open(path).ok()?;
        (Some(identity(&file.metadata().ok()?)) == self.opened).then_some(file)
    }

    /// Returns the GNU build id, from the file or from the mapping.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf().and_then(|elf| elf.build_id.as_deref()).or(self.key.build_id.as_deref())
    }
}

/// The identity of an opened file: device, inode, size, and modification time. Not the inode's change
/// time, which changes when the file is deleted.
type Opened = (u64, u64, u64, i64, i64);

fn identity(meta: &Metadata) -> Opened {
    (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())
}

/// The table of files.
#[derive(Debug, Default)]
pub struct Files {
    rows: Vec<MappedFile>,
    by_key: HashMap<FileKey, FileId>,
    by_opened: HashMap<Opened, FileId>,
    open: usize,
}

impl Files {
    /// Returns the file for `key`, opening it if it is new.
    pub fn add(&mut self, key: FileKey, place: &FileOrigin) -> FileId {
        let known = self.by_key.get(&key).copied();
        if let Some(id) = known.filter(|&id| !self.get(id).is_closed()) {
            let file = &mut self.rows[id.index()];
            if file.content.is_err() && file.attempts < MAX_ATTEMPTS {
                file.attempts += 1;
                let opened = open_mapped(&key, place);
                file.opened = opened.as_ref().ok().and_then(|file| Some(identity(&file.metadata().ok()?)));
                self.rows[id.index()].content = opened.map(|file| self.content(file));
            }
            return id;
        }
        let opened = open_mapped(&key, place);
        let opened_as = |file: &File| file.metadata().ok().as_ref().map(identity);
        let identity = opened.as_ref().ok().and_then(opened_as);
        // A file at another path keeps a row of its own: the path is shown to users.
        let same = identity.as_ref().and_then(|identity| self.by_opened.get(identity)).copied();
        let same = same.filter(|&id| self.get(id).key.path == key.path);
        if let Some(id) = same.or(known.filter(|_| opened.is_err())) {
            if let (Ok(file), true) = (opened, self.get(id).is_closed()) {
                self.rows[id.index()].content = Ok(self.content(file));
            }
            self.by_key.insert(key, id);
            return id;
        }
        let id = FileId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        let content = opened.map(|file| self.content(file));
        self.rows.push(MappedFile { key: key.clone(), content, attempts: 1, opened: identity });
        self.by_key.insert(key, id);
        if let Some(identity) = identity {
            self.by_opened.entry(identity).or_insert(id);
        }
        id
    }

    fn content(&mut self, file: File) -> Content {
        let elf = Elf::read(&file);
        let bytes = match &elf {
            Err(_) => Bytes::Taken(None),
            // Code is read through the file, which is about to be closed.
            Ok(elf) if self.open >= MAX_OPEN => {
                Bytes::Read(Box::new(UnwindSections { code: None, ..elf.unwind_sections(&file) }))
            }
            Ok(_) => {
                self.open += 1;
                Bytes::Open(file)
            }
        };
        Content { elf, bytes }
    }

    /// Returns the file.
    pub fn get(&self, id: FileId) -> &MappedFile {
        &self.rows[id.index()]
    }

    /// Takes the sections needed for unwinding; `None` if it is not a readable ELF file, and the second time unless
    /// [`MappedFile::can_be_read_again`].
    pub fn take_unwind_sections(&mut self, id: FileId) -> Option<UnwindSections> {
        let row = &mut self.rows[id.index()];
        let is_gone = |content: &Content| matches!(content.bytes, Bytes::Taken(None) | Bytes::Closed);
        let again = if row.content.as_ref().is_ok_and(is_gone) { row.open_again() } else { None };
        let content = row.content.as_mut().ok()?;
        let elf = content.elf.as_ref().ok()?;
        match std::mem::replace(&mut content.bytes, Bytes::Taken(None)) {
            Bytes::Open(file) => {
                let sections = elf.unwind_sections(&file);
                if self.open <= MAX_HELD {
                    content.bytes = Bytes::Taken(Some(file));
                } else {
                    self.open -= 1;
                }
                Some(sections)
            }
            Bytes::Read(sections) => Some(*sections),
            Bytes::Closed => {
                content.bytes = Bytes::Closed;
                again.as_ref().map(|file| elf.unwind_sections(file))
            }
            Bytes::Taken(file) => {
                let sections = file.as_ref().or(again.as_ref()).map(|file| elf.unwind_sections(file));
                content.bytes = Bytes::Taken(file);
                sections
            }
        }
    }

    /// Drops the data read from a file that no process maps any more, and closes it. It is reopened with the next mapping, and
    /// on demand by its path if that still leads to it. `is_wanted`: keep it open unless too many are open, because its
    /// symbols may be unreachable by any path.
    pub fn close(&mut self, id: FileId, is_wanted: bool) {
        let Ok(content) = &mut self.rows[id.index()].content else { return };
        content.bytes = match std::mem::replace(&mut content.bytes, Bytes::Closed) {
            Bytes::Open(file) | Bytes::Taken(Some(file)) if is_wanted && self.open < FEW_OPEN => {
                Bytes::Taken(Some(file))
            }
            Bytes::Open(_) | Bytes::Taken(Some(_)) => {
                self.open -= 1;
                Bytes::Closed
            }
            Bytes::Read(_) | Bytes::Taken(None) | Bytes::Closed => Bytes::Closed,
        };
    }

    /// Whether too many files are open for new ones to stay open, unless unused ones are closed.
    pub fn are_many(&self) -> bool {
        self.open >= FEW_OPEN
    }

    /// Returns the files that are still open but whose path is gone, leads to another file, or is not valid UTF-8 as
    /// profiles require: they can only be read through the descriptor.
    pub fn vanished(&self) -> impl Iterator<Item = (FileId, &File)> {
        let rows = (0_u32..).zip(&self.rows);
        rows.filter_map(|(index, row)| {
            let file = row.content.as_ref().ok()?.bytes.file()?;
            let path = Path::new(OsStr::from_bytes(&row.key.path));
            let is_same = |now: Metadata, then: Metadata| (now.dev(), now.ino()) == (then.dev(), then.ino());
            let there =
                std::fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|then| is_same(now, then)));
            let is_text = std::str::from_utf8(&row.key.path).is_ok();
            (!there || !is_text).then_some((FileId(index), file))
        })
    }

    /// Returns all files, in the order in which they were seen.
    pub fn ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..u32::try_from(self.rows.len()).unwrap_or(u32::MAX)).map(FileId)
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no file was seen.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
