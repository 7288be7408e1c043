//! The headers of an ELF file of either word size and byte order, in one form.
//!
//! Numbers of headers are compared with limits before anything is allocated; names and places are as the file states them.
//!
//! Elsewhere: the contents of sections.

use object::elf::{self, FileHeader32, FileHeader64};
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endian, Endianness};

use super::ElfError;

/// Largest number of program or section headers read. Real files have below 100, unlinked objects with
/// `-ffunction-sections` some 10,000.
const MAX_HEADERS: u32 = 100_000;

/// Bytes kept of a section's name: the names that anybody looks for are shorter, and a file may give one long name to all its sections.
const MOST_NAME: usize = 64;

/// The headers of an ELF file. A file may have no section table (sstrip), or no segments (a relocatable or debug file).
#[derive(Clone, Debug)]
pub struct ElfHeaders {
    /// Whether it is a 64-bit file.
    pub is_64: bool,
    /// Byte order.
    pub endian: Endianness,
    /// Processor.
    pub machine: elf::Machine,
    /// Entry point address, 0 if there is none.
    pub entry: u64,
    /// Program headers.
    pub segments: Result<Vec<ElfSegment>, ElfError>,
    /// Sections in the order of their table, so that an index is a section number.
    pub sections: Result<Vec<ElfSection>, ElfError>,
}

/// One program header.
#[derive(Clone, Copy, Debug)]
pub struct ElfSegment {
    /// `PT_*`.
    pub kind: elf::ProgramType,
    /// Whether it contains code.
    pub executable: bool,
    /// Address of the first byte, as stated in the file.
    pub address: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file, in bytes.
    pub file_size: u64,
}

/// One row of the section table.
#[derive(Clone, Debug)]
pub struct ElfSection {
    /// Name, cut off after 64 bytes; invalid UTF-8 is replaced.
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
    pub compression: ElfCompression,
}

/// The compression of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfCompression {
    /// Not compressed.
    None,
    /// `SHF_COMPRESSED`: a header has the format (ELF gABI, "Section Compression").
    Header,
    /// `.zdebug_*`: begins with the word ZLIB and the size; used by GNU tools before there was a header.
    OldGnu,
}

impl ElfHeaders {
    /// Reads the headers of a file.
    ///
    /// # Errors
    /// The file is not ELF, or its first header is damaged.
    pub fn read<'data, R: ReadRef<'data>>(data: R) -> Result<Self, ElfError> {
        match data.read_bytes_at(0, 5).map_err(|()| ElfError::NotElf)? {
            [0x7f, b'E', b'L', b'F', 1] => Self::of::<FileHeader32<Endianness>, R>(data, false),
            [0x7f, b'E', b'L', b'F', 2] => Self::of::<FileHeader64<Endianness>, R>(data, true),
            _ => Err(ElfError::NotElf),
        }
    }

    fn of<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
        data: R,
        is_64: bool,
    ) -> Result<Self, ElfError> {
        let header = H::parse(data).map_err(|_| ElfError::Damaged("header"))?;
        let endian = header.endian().map_err(|_| ElfError::Damaged("header"))?;
        Ok(Self {
            is_64,
            endian,
            machine: header.e_machine(endian),
            entry: header.e_entry(endian).into(),
            segments: segments(header, endian, data),
            sections: sections(header, endian, data),
        })
    }
}

fn segments<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
    header: &H,
    endian: Endianness,
    data: R,
) -> Result<Vec<ElfSegment>, ElfError> {
    let damaged = |_| ElfError::Damaged("program headers");
    if header.phnum(endian, data).map_err(damaged)? > MAX_HEADERS {
        return Err(ElfError::TooLarge("program header table"));
    }
    let segments = header.program_headers(endian, data).map_err(damaged)?.iter();
    let segment = |segment: &H::ProgramHeader| ElfSegment {
        kind: segment.p_type(endian),
        executable: segment.p_flags(endian).0 & elf::PF_X.0 != 0,
        address: segment.p_vaddr(endian).into(),
        offset: segment.p_offset(endian).into(),
        file_size: segment.p_filesz(endian).into(),
    };
    Ok(segments.map(segment).collect())
}

fn sections<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(
    header: &'data H,
    endian: Endianness,
    data: R,
) -> Result<Vec<ElfSection>, ElfError> {
    let damaged = |_| ElfError::Damaged("section headers");
    if header.shnum(endian, data).map_err(damaged)? > MAX_HEADERS {
        return Err(ElfError::TooLarge("section header table"));
    }
    let table = header.sections(endian, data).map_err(damaged)?;
    let section = |section: &H::SectionHeader| {
        let name = table.section_name(endian, section).unwrap_or_default();
        let has = |flag: elf::SectionFlags| section.sh_flags(endian).0 & flag.0 != 0;
        ElfSection {
            name: String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]).into_owned(),
            kind: section.sh_type(endian),
            address: section.sh_addr(endian).into(),
            size: section.sh_size(endian).into(),
            offset: section.sh_offset(endian).into(),
            link: section.sh_link(endian) as usize,
            entry_size: section.sh_entsize(endian).into(),
            executable: has(elf::SHF_EXECINSTR),
            compression: match name.starts_with(b".zdebug_") {
                _ if has(elf::SHF_COMPRESSED) => ElfCompression::Header,
                true => ElfCompression::OldGnu,
                false => ElfCompression::None,
            },
        }
    };
    Ok(table.iter().map(section).collect())
}

/// Returns the GNU build id among ELF notes (gABI, "Note Section"), each padded to four bytes.
pub fn build_id_of_notes(mut notes: &[u8], endian: Endianness) -> Option<&[u8]> {
    loop {
        let (header, rest) = notes.split_first_chunk::<12>()?;
        let [name_size, size, kind] =
            [0, 4, 8].map(|at| header[at..].first_chunk().map(|word| endian.read_u32(*word)));
        let (name, rest) = rest.split_at_checked(padded(name_size?)?)?;
        let (description, after) = rest.split_at_checked(size? as usize)?;
        if kind? == elf::NT_GNU_BUILD_ID.0 && name == b"GNU\0" {
            return Some(description);
        }
        notes = after.get(padded(size?)? - description.len()..)?;
    }
}

/// Size of a part of a note with its padding.
fn padded(size: u32) -> Option<usize> {
    usize::try_from(size).ok()?.checked_next_multiple_of(4)
}
