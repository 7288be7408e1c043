//! An open ELF file: its headers, and its sections' bytes read one by one when asked for.
//!
//! Files are read, never mapped: a mapped file that somebody truncates meanwhile kills the reader with SIGBUS, and a
//! profiler is used just where binaries are being rebuilt. Reading the sections that are needed costs about 1 ms for
//! each megabyte. No size in a header is believed: every read is bounded by the length of the file.
//!
//! Not here: what is in the sections.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use object::elf::{self, Machine, NT_GNU_BUILD_ID};
use object::read::{CompressedData, ReadCache};
use object::{Endian, Endianness};
use plumb_profile::BuildId;

use crate::headers::{Compression, Form, Headers, Section, Segment, compression_header, old_gnu_header};
use crate::summary::Missing;

/// Largest section that is read or decompressed. Larger ones exist in browsers built with `-g`, which have to be
/// split.
const MAX_SECTION: u64 = 4 << 30;

/// Sections of notes that are looked into for the build id.
const MOST_NOTES: usize = 16;

/// Up to as many bytes are read in one call to the system.
const FEW: u64 = 4096;

/// An ELF file.
#[derive(Debug)]
pub(crate) struct Image {
    /// Where it was opened.
    pub path: PathBuf,
    /// Its sections in the order of the table, so that an index is a section number.
    pub sections: Vec<Section>,
    /// Its loaded segments.
    pub segments: Vec<Segment>,
    /// Its build id.
    pub build_id: Option<BuildId>,
    /// Byte order and word size.
    pub form: Form,
    /// Processor.
    pub machine: Machine,
    /// Stated address at which a process begins, 0 if none does.
    pub entry: u64,
    /// When it was last written; `None` for an image that is no file.
    pub modified: Option<SystemTime>,
    /// Which file it was in which state; `None` for an image that is no file.
    pub stamp: Option<Stamp>,
    bytes: Bytes,
}

/// A file on this machine in the state in which it was opened: device, inode, size, time of the last write and of the last change.
/// The last is the kernel's alone to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp([u64; 7]);

/// How long ago the last change has to be so that the next one has another time: some file systems count in seconds.
const SETTLED: Duration = Duration::from_secs(2);

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let times = [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()];
        let [written, written_ns, changed, changed_ns] = times.map(i64::cast_unsigned);
        Self([meta.dev(), meta.ino(), meta.size(), written, written_ns, changed, changed_ns])
    }

    /// Bytes that no other file has, nor this one once it is changed; `None` if it was changed just now.
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

/// Where the bytes are.
#[derive(Debug)]
enum Bytes {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Image {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<Self, Missing> {
        let unreadable =
            |error: std::io::Error| Missing::Unreadable { path: path.into(), error: error.to_string() };
        let meta = std::fs::metadata(path).map_err(unreadable)?;
        if !meta.is_file() {
            return Err(Missing::Malformed { path: path.into(), error: "not a regular file".into() });
        }
        let file = File::open(path).map_err(unreadable)?;
        // The path may have come to mean another file meanwhile.
        let meta = file.metadata().map_err(unreadable)?;
        let mut image = Self::parse(path, Bytes::File(file, meta.len()))?;
        image.modified = meta.modified().ok();
        image.stamp = Some(Stamp::of(&meta));
        Ok(image)
    }

    /// An image that is in memory: the vdso, or a symbol table that was unpacked. `path` is for messages.
    pub fn from_memory(path: &Path, bytes: Vec<u8>) -> Result<Self, Missing> {
        Self::parse(path, Bytes::Memory(bytes))
    }

    fn parse(path: &Path, bytes: Bytes) -> Result<Self, Missing> {
        let malformed = |error: object::Error| Missing::Malformed {
            path: path.into(),
            error: format!("ELF headers: {error}"),
        };
        let headers = match &bytes {
            Bytes::File(file, _) => {
                let cache = ReadCache::new(file);
                Headers::read(&cache)
            }
            Bytes::Memory(memory) => Headers::read(&**memory),
        };
        let Headers { sections, segments, form, machine, entry } = headers.map_err(malformed)?;
        let mut image = Self {
            path: path.into(),
            sections,
            segments,
            build_id: None,
            form,
            machine,
            entry,
            modified: None,
            stamp: None,
            bytes,
        };
        image.build_id = image.read_build_id();
        Ok(image)
    }

    /// The number and header of the first section called `name`.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The first section of this type.
    pub fn section_of(&self, kind: elf::SectionType) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// A debug section under its own name or, compressed as GNU used to, as `.zdebug_*`.
    pub fn debug_section(&self, name: &str) -> Option<&Section> {
        self.section(name).or_else(|| {
            let old = format!(".z{}", name.strip_prefix('.')?);
            self.section(&old)
        })
    }

    /// Whether it has DWARF with functions or lines.
    pub fn has_dwarf(&self) -> bool {
        self.debug_section(".debug_info").is_some_and(|s| s.kind != elf::SHT_NOBITS && s.size > 0)
    }

    /// The contents of a section, decompressed. Empty for one without contents in this file.
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

    /// `size` bytes from `offset` on; an error if the file ends before.
    pub fn read_range(&self, offset: u64, size: u64) -> Result<Vec<u8>, Missing> {
        let bytes = self.read_up_to(offset, size)?;
        if (bytes.len() as u64) < size {
            return Err(self.malformed(format!("{size} bytes at offset {offset:#x} are beyond the end")));
        }
        Ok(bytes)
    }

    /// At most `size` bytes from `offset` on.
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

    /// What is at a stated address of the file, at most `size` bytes; empty if nothing is loaded there.
    pub fn read_address(&self, address: u64, size: u64) -> Vec<u8> {
        let found = self.segments.iter().find_map(|segment| {
            let into = address.checked_sub(segment.address).filter(|&into| into < segment.file_size)?;
            Some((segment.offset.checked_add(into)?, (segment.file_size - into).min(size)))
        });
        found.and_then(|(offset, size)| self.read_up_to(offset, size).ok()).unwrap_or_default()
    }

    /// The stated address of a byte of the file.
    pub fn address_of_offset(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let into = offset.checked_sub(segment.offset).filter(|&into| into < segment.file_size)?;
            segment.address.checked_add(into)
        })
    }

    /// Length of the file in bytes.
    pub fn len(&self) -> u64 {
        match &self.bytes {
            Bytes::File(_, length) => *length,
            Bytes::Memory(memory) => memory.len() as u64,
        }
    }

    /// What says that something in this file is damaged.
    pub fn malformed(&self, error: String) -> Missing {
        Missing::Malformed { path: self.path.clone(), error }
    }

    /// The contents of a section that is stored as `raw`.
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
        // Most linkers give it a section of its own; the vdso has it among others.
        let notes = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE).take(MOST_NOTES);
        notes
            .filter_map(|section| self.read_up_to(section.offset, section.size.min(1 << 12)).ok())
            .find_map(|bytes| build_id_of_notes(&bytes, self.form.endian))
    }
}

/// What so many compressed bytes may decompress to. DWARF becomes 3 to 10 times as large; zstd could make 480 MB of 15 kB, in each section of a
/// file, before it shows that nothing in them is debug information.
fn most_decompressed(stored: u64) -> u64 {
    stored.saturating_mul(256).max(16 << 20)
}

/// The build id among the ELF notes in `bytes` (aligned to 4, as all notes that the GNU tools write).
pub(crate) fn build_id_of_notes(mut bytes: &[u8], endian: Endianness) -> Option<BuildId> {
    let word = |bytes: &[u8], at: usize| {
        let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(endian.read_u32(word)).ok()
    };
    loop {
        let (name_size, size, kind) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?);
        let name_end = 12_usize.checked_add(name_size)?;
        let start = name_end.checked_next_multiple_of(4)?;
        let end = start.checked_add(size)?;
        let description = bytes.get(start..end)?;
        if u32::try_from(kind) == Ok(NT_GNU_BUILD_ID.0) && bytes.get(12..name_end) == Some(b"GNU\0") {
            return BuildId::new(description);
        }
        bytes = bytes.get(end.checked_next_multiple_of(4)?..)?;
    }
}
