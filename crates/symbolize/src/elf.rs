//! An open ELF file: its headers, and on demand its sections' bytes.
//!
//! Files are read, never mapped: truncating a mapped file kills the reader with SIGBUS, and a
//! profiler is used just where binaries are being rebuilt. Reading the needed sections costs about 1 ms per
//! megabyte. Sizes in headers are not trusted: every read is bounded by the length of the file.
//!
//! Elsewhere: the contents of the sections.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object::elf::{self, Machine};
use object::read::{CompressedData, ReadCache};
use plumb_process::elf::{ElfError, ElfHeaders, build_id_of_notes};
use plumb_profile::BuildId;

use crate::headers::{Compression, Form, Section, Segment, compression_header, old_gnu_header};
use crate::summary::Missing;

/// Largest section that is read or decompressed. Larger ones exist in browsers built with `-g`, which have to be
/// split.
const MAX_SECTION: u64 = 4 << 30;

/// Largest number of note sections searched for the build id.
const MOST_NOTES: usize = 16;

/// Reads of up to this many bytes take one system call.
const FEW: u64 = 4096;

/// An ELF file.
#[derive(Debug)]
pub(crate) struct Image {
    /// Path from which it was opened.
    pub path: PathBuf,
    /// Sections in the order of the table, so that an index is a section number.
    pub sections: Vec<Section>,
    /// Loaded segments.
    pub segments: Vec<Segment>,
    /// Build id.
    pub build_id: Option<BuildId>,
    /// Byte order and word size.
    pub form: Form,
    /// Processor.
    pub machine: Machine,
    /// Entry point address, 0 if there is none.
    pub entry: u64,
    /// Time of the last modification; `None` for an image that is not a file.
    pub modified: Option<SystemTime>,
    /// Identity and state of the file; `None` for an image that is not a file.
    pub stamp: Option<Stamp>,
    bytes: Bytes,
}

/// A file on this machine in the state in which it was opened: device, inode, size, time of the last modification and of the last status change.
/// Only the kernel can set the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([u64; 7]);

/// Least age of the last change for the next one to have another timestamp: some file systems count in seconds.
const SETTLED: Duration = Duration::from_secs(2);

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        let [written, written_ns, changed, changed_ns] = times.map(i64::cast_unsigned);
        Self([meta.dev(), meta.ino(), meta.size(), written, written_ns, changed, changed_ns])
    }

    /// Returns bytes that no other file has, nor this one once it is changed; `None` if it was changed just now.
    pub fn settled(&self) -> Option<[u8; 56]> {
        let changed = Duration::new(self.0[5], u32::try_from(self.0[6]).ok()?);
        let age = SystemTime::now().duration_since(UNIX_EPOCH.checked_add(changed)?);
        age.ok().filter(|age| *age > SETTLED)?;
        let mut bytes = [0; 56];
        bytes
            .chunks_mut(8)
            .zip(self.0)
            .for_each(|(place, number)| place.copy_from_slice(&number.to_le_bytes()));
        Some(bytes)
    }
}

/// The source of the bytes.
#[derive(Debug)]
enum Bytes {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Image {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<Self, Missing> {
        let unreadable = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Missing::Absent { path: path.into() },
            _ => Missing::Unreadable { path: path.into(), error: error.to_string() },
        };
        let meta = std::fs::metadata(path).map_err(unreadable)?;
        if !meta.is_file() {
            return Err(Missing::Malformed { path: path.into(), error: "not a regular file".into() });
        }
        let file = File::open(path).map_err(unreadable)?;
        // The path may refer to another file by now.
        let meta = file.metadata().map_err(unreadable)?;
        let mut image = Self::parse(path, Bytes::File(file, meta.len()))?;
        image.modified = meta.modified().ok();
        image.stamp = Some(Stamp::of(&meta));
        Ok(image)
    }

    /// Opens an image in memory: the vdso, or a decompressed symbol table. `path` is for messages.
    pub fn from_memory(path: &Path, bytes: Vec<u8>) -> Result<Self, Missing> {
        Self::parse(path, Bytes::Memory(bytes))
    }

    fn parse(path: &Path, bytes: Bytes) -> Result<Self, Missing> {
        let malformed = |error: ElfError| Missing::Malformed { path: path.into(), error: error.to_string() };
        let headers = match &bytes {
            Bytes::File(file, _) => {
                let cache = ReadCache::new(file);
                ElfHeaders::read(&cache)
            }
            Bytes::Memory(memory) => ElfHeaders::read(&**memory),
        };
        let ElfHeaders { sections, segments, is_64, endian, machine, entry } = headers.map_err(malformed)?;
        let sections = sections.map_err(malformed)?;
        let mut segments = segments.unwrap_or_default();
        segments.retain(|segment| segment.kind == elf::PT_LOAD);
        let mut image = Self {
            path: path.into(),
            sections,
            segments,
            build_id: None,
            form: Form { endian, is_64 },
            machine,
            entry,
            modified: None,
            stamp: None,
            bytes,
        };
        image.build_id = image.read_build_id();
        Ok(image)
    }

    /// Returns the first section called `name`.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the first section of this type.
    pub fn section_of(&self, kind: elf::SectionType) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// Returns a debug section under its own name or, with old GNU compression, as `.zdebug_*`.
    pub fn debug_section(&self, name: &str) -> Option<&Section> {
        self.section(name).or_else(|| {
            let old = format!(".z{}", name.strip_prefix('.')?);
            self.section(&old)
        })
    }

    /// Whether the file has DWARF with functions or lines.
    pub fn has_dwarf(&self) -> bool {
        self.debug_section(".debug_info").is_some_and(|s| s.kind != elf::SHT_NOBITS && s.size > 0)
    }

    /// Reads the contents of a section, decompressed. Empty for a section without contents in this file.
    pub fn read(&self, section: &Section) -> Result<Vec<u8>, Missing> {
        if section.kind == elf::SHT_NOBITS {
            return Ok(Vec::new());
        }
        let raw = self.read_range(section.offset, section.size)?;
        match section.compression {
            Compression::None => Ok(raw),
            _ => self.decompress(section, &raw),
        }
    }

    /// Reads `size` bytes from `offset` on; fails if the file ends before.
    pub fn read_range(&self, offset: u64, size: u64) -> Result<Vec<u8>, Missing> {
        let bytes = self.read_up_to(offset, size)?;
        if (bytes.len() as u64) < size {
            return Err(self.malformed(format!("{size} bytes at offset {offset:#x} are beyond the end")));
        }
        Ok(bytes)
    }

    /// Reads at most `size` bytes from `offset` on.
    pub fn read_up_to(&self, offset: u64, size: u64) -> Result<Vec<u8>, Missing> {
        match &self.bytes {
            Bytes::Memory(memory) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(memory.len());
                let length = usize::try_from(size).unwrap_or(usize::MAX).min(memory.len() - start);
                Ok(memory[start..start + length].to_vec())
            }
            Bytes::File(file, length) => {
                let size = size.min(length.saturating_sub(offset));
                if size > MAX_SECTION {
                    return Err(Missing::Skipped {
                        what: format!(
                            "{}: {size} bytes at offset {offset:#x} are too many",
                            self.path.display()
                        ),
                    });
                }
                let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
                if size <= FEW {
                    bytes.resize(size as usize, 0);
                    if file.read_exact_at(&mut bytes, offset).is_ok() {
                        return Ok(bytes);
                    }
                    bytes.clear();
                }
                let mut file: &File = file;
                let read =
                    file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(size).read_to_end(&mut bytes));
                read.map_err(|error| Missing::Unreadable {
                    path: self.path.clone(),
                    error: format!("at offset {offset:#x}: {error}"),
                })?;
                Ok(bytes)
            }
        }
    }

    /// Reads at most `size` bytes at an address of the file; empty if nothing is loaded there.
    pub fn read_address(&self, address: u64, size: u64) -> Vec<u8> {
        let found = self.segments.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address).filter(|&into| into < segment.file_size)?;
            Some((segment.offset.checked_add(into)?, (segment.file_size - into).min(size)))
        });
        found.and_then(|(offset, size)| self.read_up_to(offset, size).ok()).unwrap_or_default()
    }

    /// Converts a file offset into an address of the file.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let into = offset.checked_sub(segment.offset).filter(|&into| into < segment.file_size)?;
            segment.address.checked_add(into)
        })
    }

    /// Returns the length of the file in bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::File(_, length) => *length,
            Bytes::Memory(memory) => memory.len() as u64,
        }
    }

    /// Returns the error for damage in this file.
    pub fn malformed(&self, error: String) -> Missing {
        Missing::Malformed { path: self.path.clone(), error }
    }

    /// Decompresses a section that is stored as `raw`.
    fn decompress(&self, section: &Section, raw: &[u8]) -> Result<Vec<u8>, Missing> {
        let failed = |what: &str| {
            self.malformed(format!("section {} at offset {:#x}: {what}", section.name, section.offset))
        };
        let (format, size, data) = match section.compression {
            Compression::None => return Ok(raw.to_vec()),
            Compression::OldGnu => old_gnu_header(raw),
            Compression::Header => compression_header(raw, self.form),
        }
        .ok_or_else(|| failed("unknown compression"))?;
        if size > MAX_SECTION || size > most_decompressed(raw.len() as u64) {
            return Err(failed("decompresses to too many bytes"));
        }
        let data = CompressedData { format, data, uncompressed_size: size };
        data.decompress().map(|bytes| bytes.into_owned()).map_err(|error| failed(&error.to_string()))
    }

    fn read_build_id(&self) -> Option<BuildId> {
        // Most linkers put it into a section of its own; the vdso has it among other notes.
        let notes = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE).take(MOST_NOTES);
        notes
            .filter_map(|section| self.read_up_to(section.offset, section.size.min(1 << 12)).ok())
            .find_map(|bytes| BuildId::new(build_id_of_notes(&bytes, self.form.endian)?))
    }
}

/// Returns the largest size to which compressed bytes may decompress. DWARF expands to 3 to 10 times its size; zstd could make 480 MB of 15 kB,
/// in each section of a file, before it shows that nothing in them is debug information.
fn most_decompressed(stored: u64) -> u64 {
    stored.saturating_mul(256).max(16 << 20)
}
