//! The headers of an ELF file of either word size and byte order, in one form.
//!
//! Elsewhere: the contents of the sections.

use object::elf::{self, FileHeader32, FileHeader64, Machine};
use object::read::elf::{CompressionHeader, FileHeader, ProgramHeader, SectionHeader};
use object::read::{CompressionFormat, ReadRef, Result};
use object::{Endianness, pod};

/// The parts of the headers that symbolization needs.
pub(crate) struct Headers {
    /// Sections in the order of their table, so that an index is a section number.
    pub sections: Vec<Section>,
    /// Loaded segments.
    pub segments: Vec<Segment>,
    /// Byte order and word size.
    pub form: Form,
    /// Processor.
    pub machine: Machine,
    /// Entry point address (`e_entry`), 0 if there is none.
    pub entry: u64,
}

/// Byte order and word size of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Byte order.
    pub endian: Endianness,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
}

/// One row of the section table.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Name; invalid UTF-8 is replaced.
    pub name: String,
    /// `SHT_*`.
    pub kind: elf::SectionType,
    /// Address, 0 if the section is not loaded.
    pub address: u64,
    /// Size in bytes in memory, and in the file unless it is `SHT_NOBITS`.
    pub size: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Number of an associated section: for a symbol table, its strings.
    pub link: usize,
    /// Size of an entry in bytes, if it is a table.
    pub entry_size: u64,
    /// Whether it contains code.
    pub executable: bool,
    /// Compression of its contents.
    pub compression: Compression,
}

/// Usual ratio of debug information's decompressed to its compressed size.
pub(crate) const INFLATED: u64 = 3;

/// The compression of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// Not compressed.
    None,
    /// `SHF_COMPRESSED`: a header has the format (ELF gABI, "Section Compression").
    Header,
    /// `.zdebug_*`: begins with the word ZLIB and the size; used by GNU tools before there was a header.
    OldGnu,
}

/// One loaded segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Address.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file, in bytes.
    pub file_size: u64,
}

impl Headers {
    /// Reads the headers of an ELF file.
    pub fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Self> {
        let class = data.read_bytes_at(4, 1).ok().and_then(|bytes| bytes.first());
        // Parsing checks the magic number and the class.
        if class == Some(&elf::ELFCLASS64.0) {
            Self::of::<FileHeader64<Endianness>, R>(data, true)
        } else {
            Self::of::<FileHeader32<Endianness>, R>(data, false)
        }
    }

    fn of<'data, Elf: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
        data: R,
        is_64: bool,
    ) -> Result<Self> {
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        // A file may have no section table (sstrip), or no segments (a relocatable or debug file).
        let table = header.sections(endian, data)?;
        let sections = table.iter().map(|section| {
            let name = table.section_name(endian, section).unwrap_or_default();
            let compression = if section.sh_flags(endian).0 & elf::SHF_COMPRESSED.0 != 0 {
                Compression::Header
            } else if name.starts_with(b".zdebug_") {
                Compression::OldGnu
            } else {
                Compression::None
            };
            Section {
                name: String::from_utf8_lossy(name).into_owned(),
                kind: section.sh_type(endian),
                address: section.sh_addr(endian).into(),
                size: section.sh_size(endian).into(),
                offset: section.sh_offset(endian).into(),
                link: section.sh_link(endian) as usize,
                entry_size: section.sh_entsize(endian).into(),
                executable: section.sh_flags(endian).0 & elf::SHF_EXECINSTR.0 != 0,
                compression,
            }
        });
        let sections = sections.collect();
        let segments = header.program_headers(endian, data).unwrap_or_default().iter();
        let segments =
            segments.filter(|segment| segment.p_type(endian) == elf::PT_LOAD).map(|segment| Segment {
                address: segment.p_vaddr(endian).into(),
                offset: segment.p_offset(endian).into(),
                file_size: segment.p_filesz(endian).into(),
            });
        let segments = segments.collect();
        Ok(Self {
            sections,
            segments,
            form: Form { endian, is_64 },
            machine: header.e_machine(endian),
            entry: header.e_entry(endian).into(),
        })
    }
}

/// Returns format, decompressed size and data of a section with `SHF_COMPRESSED`.
pub(crate) fn compression_header(raw: &[u8], form: Form) -> Option<(CompressionFormat, u64, &[u8])> {
    let (kind, size, data) = if form.is_64 {
        let (header, data) = pod::from_bytes::<elf::CompressionHeader64<Endianness>>(raw).ok()?;
        (header.ch_type(form.endian), header.ch_size(form.endian), data)
    } else {
        let (header, data) = pod::from_bytes::<elf::CompressionHeader32<Endianness>>(raw).ok()?;
        (header.ch_type(form.endian), header.ch_size(form.endian).into(), data)
    };
    let format = match kind {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    Some((format, size, data))
}

/// Returns format, decompressed size and data of a `.zdebug_*` section.
pub(crate) fn old_gnu_header(raw: &[u8]) -> Option<(CompressionFormat, u64, &[u8])> {
    let (size, data) = raw.strip_prefix(b"ZLIB")?.split_first_chunk::<8>()?;
    Some((CompressionFormat::Zlib, u64::from_be_bytes(*size), data))
}
