//! Reads the parts of an ELF file needed for unwinding: the mapping of file offsets to addresses, the build id, the unwind sections.
//!
//! Headers are parsed by `object` (`headers`), through small `pread`s; sections are read on demand. Sizes stated in the file
//! are compared with limits before anything is allocated.
//!
//! Elsewhere: symbols, DWARF other than raw bytes.

mod headers;

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::FileExt;

use object::elf;
use object::read::{ReadCache, ReadRef};

pub use headers::{ElfCompression, ElfHeaders, ElfSection, ElfSegment, build_id_of_notes};
pub use object::Endianness;

use crate::section::SectionReader;

/// Program header of `.sframe` (include/elf/common.h of binutils).
const PT_GNU_SFRAME: elf::ProgramType = elf::ProgramType(0x6474_e554);
/// Largest unwind section that is read, in bytes; the largest seen are below 20 MiB.
const MAX_SECTION: u64 = 512 << 20;

/// A byte offset in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileOffset(pub u64);

/// The bytes of a section and their address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Address of the first byte, as stated in the file.
    pub address: u64,
    /// The content.
    pub bytes: Vec<u8>,
}

/// The sections that a stack unwinder needs.
#[derive(Debug, Default)]
pub struct UnwindSections {
    /// `.eh_frame`
    pub eh_frame: Option<Section>,
    /// `.eh_frame_hdr`, or the target of `PT_GNU_EH_FRAME`.
    pub eh_frame_hdr: Option<Section>,
    /// `.debug_frame`, if it exists and is not compressed.
    pub debug_frame: Option<Section>,
    /// `.ARM.exidx`, or the target of `PT_ARM_EXIDX`.
    pub exidx: Option<Section>,
    /// `.ARM.extab`
    pub extab: Option<Section>,
    /// `.sframe`, or the target of `PT_GNU_SFRAME`.
    pub sframe: Option<Section>,
    /// Stated address of `.text`.
    pub text: Option<u64>,
    /// Stated address of `.got`.
    pub got: Option<u64>,
    /// Stated address of the entry point.
    pub entry: Option<u64>,
    /// `.text`, which is most of a file.
    pub code: Option<SectionReader>,
    /// The full symbol table, if there is one: `Elf64_Sym` each.
    pub symbols: Option<SectionReader>,
    /// `.gopclntab` and `.text` of a Go program: together they are most of the file.
    pub go: Option<Box<[SectionReader; 2]>>,
}

/// The reason why a file cannot be used as an ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// The file has another format.
    NotElf,
    /// This part of the headers is damaged.
    Damaged(&'static str),
    /// This part of the headers claims more than any real file has.
    TooLarge(&'static str),
}

impl fmt::Display for ElfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElfError::NotElf => f.write_str("not an ELF file"),
            ElfError::Damaged(part) => write!(f, "damaged ELF {part}"),
            ElfError::TooLarge(part) => write!(f, "unreasonably large ELF {part}"),
        }
    }
}

impl std::error::Error for ElfError {}

/// The position of a section's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    address: u64,
    offset: u64,
    size: u64,
}

/// A part of the file that is loaded into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    place: Place,
    executable: bool,
}

/// The headers of an ELF file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elf {
    /// Whether it is a 64-bit file.
    pub is_64: bool,
    /// Whether numbers are little-endian.
    pub is_little_endian: bool,
    /// `e_machine`: 62 is x86_64.
    pub machine: u16,
    /// GNU build id, from the notes of the program headers, otherwise those of the sections.
    pub build_id: Option<Box<[u8]>>,
    segments: Vec<Segment>,
    eh_frame: Option<Place>,
    eh_frame_hdr: Option<Place>,
    debug_frame: Option<Place>,
    /// `.ARM.exidx` and `.ARM.extab`.
    arm: (Option<Place>, Option<Place>),
    sframe: Option<Place>,
    text: Option<Place>,
    got: Option<u64>,
    entry: Option<u64>,
    gopclntab: Option<Place>,
    /// `.symtab` and `.comment`.
    about: (Option<Place>, Option<Place>),
}

/// Largest part with notes that is read, in bytes.
const MAX_NOTES: u64 = 1 << 20;
/// Largest part of `.comment` that is read, in bytes; it has a few dozen per compiler.
const MAX_COMMENT: u64 = 1 << 16;

impl Elf {
    /// Reads the headers of a file.
    pub fn read(file: impl Read + Seek) -> Result<Self, ElfError> {
        let cache = ReadCache::new(file);
        let headers = ElfHeaders::read(&cache)?;
        let mut found = Elf {
            is_64: headers.is_64,
            is_little_endian: headers.endian == Endianness::Little,
            machine: headers.machine.0,
            entry: Some(headers.entry).filter(|&entry| entry != 0),
            ..Elf::default()
        };
        let notes = |offset, size: u64| {
            cache.read_bytes_at(offset, Some(size).filter(|&size| size <= MAX_NOTES)?).ok()
        };
        let build_id = |offset, size| build_id_in(notes(offset, size)?, headers.endian);
        for segment in headers.segments? {
            found.take_segment(&segment, build_id);
        }
        // A file may have no section headers; then the program headers must suffice.
        for section in headers.sections.unwrap_or_default() {
            found.take_section(&section, build_id);
        }
        Ok(found)
    }

    /// Returns the stated address of the byte at `offset`. If segments share a page, one with code is preferred, because
    /// callers ask for code.
    pub fn stated(&self, offset: FileOffset) -> Option<u64> {
        let page_start = |segment: &Segment| segment.place.offset & !0xfff;
        let holds = |segment: &&Segment| {
            offset.0 >= page_start(segment)
                && offset.0 - segment.place.offset.min(offset.0) < segment.place.size
                && segment.place.size > 0
        };
        let mut holding = self.segments.iter().filter(holds);
        let first = holding.next()?;
        let segment = if first.executable { first } else { holding.find(|s| s.executable).unwrap_or(first) };
        Some(segment.place.address.wrapping_add(offset.0).wrapping_sub(segment.place.offset))
    }

    /// Iterates over the executable segments: stated address of the first byte, offset in the file, size.
    pub fn code(&self) -> impl Iterator<Item = (u64, FileOffset, u64)> {
        let code = self.segments.iter().filter(|segment| segment.executable);
        code.map(|Segment { place, .. }| (place.address, FileOffset(place.offset), place.size))
    }

    /// Reads the sections needed for unwinding through `read(offset, size)`, and leaves large ones to `later`. Missing and
    /// unreadable ones are `None`.
    fn sections_by(
        &self,
        read: impl Fn(u64, u64) -> Option<Vec<u8>>,
        later: impl Fn(Place) -> Option<SectionReader>,
    ) -> UnwindSections {
        let section = |place: Option<Place>| {
            let place = place.filter(|place| place.size <= MAX_SECTION)?;
            Some(Section { address: place.address, bytes: read(place.offset, place.size)? })
        };
        let eh_frame_hdr = section(self.eh_frame_hdr);
        let eh_frame = section(self.eh_frame.or_else(|| self.behind_header(eh_frame_hdr.as_ref()?)));
        let debug_frame = section(self.debug_frame);
        let (exidx, extab, sframe) = (section(self.arm.0), section(self.arm.1), section(self.sframe));
        let go = self.gopclntab.and_then(|table| Some(Box::new([later(table)?, later(self.text?)?])));
        let code = self.text.filter(|_| go.is_none()).and_then(&later);
        let symbols =
            self.about.0.filter(|_| self.is_64 && self.is_little_endian && code.is_some()).and_then(&later);
        let text = self.text.map(|place| place.address);
        let (got, entry) = (self.got, self.entry);
        UnwindSections {
            eh_frame,
            eh_frame_hdr,
            debug_frame,
            exidx,
            extab,
            sframe,
            text,
            got,
            entry,
            code,
            symbols,
            go,
        }
    }

    /// Reads the sections needed for unwinding from the file that the headers came from.
    pub fn unwind_sections(&self, file: &File) -> UnwindSections {
        let length = file.metadata().map_or(0, |meta| meta.len());
        let read = |offset: u64, size: u64| {
            // A file may claim any size: never allocate more than it has.
            let end = offset.checked_add(size)?;
            let mut bytes = vec![0; usize::try_from(size).ok().filter(|_| end <= length)?];
            file.read_exact_at(&mut bytes, offset).ok()?;
            Some(bytes)
        };
        let later = |Place { address, offset, size }: Place| {
            let end = offset.checked_add(size).filter(|&end| end <= length)?;
            Some(SectionReader::of_file(address, file.try_clone().ok()?, offset..end))
        };
        self.sections_by(read, later)
    }

    /// Returns the compilers named in `.comment` of the file that the headers came from; empty without such a section.
    pub fn compilers(&self, file: &File) -> String {
        let Some(place) = self.about.1 else { return String::new() };
        let mut bytes = vec![0; place.size.min(MAX_COMMENT) as usize];
        let read = file.read_exact_at(&mut bytes, place.offset);
        read.map(|()| String::from_utf8_lossy(&bytes).replace('\0', "\n")).unwrap_or_default()
    }

    /// Extracts the sections needed for unwinding from an image in memory, such as the vdso.
    pub fn unwind_sections_in(&self, image: &[u8]) -> UnwindSections {
        let read = |offset: u64, size: u64| {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            image.get(start..end).map(<[u8]>::to_vec)
        };
        let later =
            |place: Place| Some(SectionReader::of_bytes(place.address, read(place.offset, place.size)?));
        self.sections_by(read, later)
    }

    /// Returns the position of `.eh_frame` according to `.eh_frame_hdr`, for files without section headers. Its size is not stated: it ends with a terminator, at the latest with its segment.
    fn behind_header(&self, header: &Section) -> Option<Place> {
        let address = eh_frame_address(&header.bytes, header.address)?;
        let inside = |place: &Place| address >= place.address && address - place.address < place.size;
        let place = self.segments.iter().map(|segment| segment.place).find(inside)?;
        let skipped = address - place.address;
        Some(Place { address, offset: place.offset.checked_add(skipped)?, size: place.size - skipped })
    }
}

/// Returns the address of `.eh_frame` that an `.eh_frame_hdr` at `at` states (LSB core, "The .eh_frame_hdr section").
pub fn eh_frame_address(header: &[u8], at: u64) -> Option<u64> {
    let encoding = *header.get(1)?;
    let pointer = header.get(4..)?;
    let value = match encoding & 0x0f {
        0x03 => u64::from(u32::from_le_bytes(*pointer.first_chunk()?)),
        0x0b => i64::from(i32::from_le_bytes(*pointer.first_chunk()?)).cast_unsigned(),
        0x00 | 0x04 | 0x0c => u64::from_le_bytes(*pointer.first_chunk()?),
        _ => return None,
    };
    match encoding & 0x70 {
        0x00 => Some(value),
        0x10 => Some(at.wrapping_add(4).wrapping_add(value)),
        0x30 => Some(at.wrapping_add(value)),
        _ => None,
    }
}

/// Returns the build id among notes if its length is plausible.
fn build_id_in(notes: &[u8], endian: Endianness) -> Option<Box<[u8]>> {
    build_id_of_notes(notes, endian).filter(|id| (1..=64).contains(&id.len())).map(Box::from)
}

impl Elf {
    /// Takes what a program header says. `build_id` reads that among the notes at an offset.
    fn take_segment(&mut self, segment: &ElfSegment, build_id: impl Fn(u64, u64) -> Option<Box<[u8]>>) {
        let &ElfSegment { kind, executable, address, offset, file_size: size } = segment;
        let place = Place { address, offset, size };
        match kind {
            elf::PT_LOAD => self.segments.push(Segment { place, executable }),
            elf::PT_GNU_EH_FRAME => self.eh_frame_hdr = Some(place),
            PT_GNU_SFRAME => self.sframe = Some(place),
            // Other architectures use this number differently.
            elf::PT_ARM_EXIDX if self.machine == elf::EM_ARM.0 => self.arm.0 = Some(place),
            elf::PT_NOTE if self.build_id.is_none() => self.build_id = build_id(offset, size),
            _ => {}
        }
    }

    /// As [`take_segment`](Self::take_segment), of a section with bytes in the file.
    fn take_section(&mut self, section: &ElfSection, build_id: impl Fn(u64, u64) -> Option<Box<[u8]>>) {
        let &ElfSection { kind, address, offset, size, compression, .. } = section;
        if kind == elf::SHT_NOBITS {
            return;
        }
        let place = Place { address, offset, size };
        let is_plain = compression == ElfCompression::None;
        match &*section.name {
            _ if kind == elf::SHT_SYMTAB => self.about.0 = Some(place),
            ".eh_frame" => self.eh_frame = Some(place),
            ".eh_frame_hdr" => self.eh_frame_hdr = Some(place),
            ".debug_frame" if is_plain => self.debug_frame = Some(place),
            ".sframe" => self.sframe = Some(place),
            ".ARM.exidx" => self.arm.0 = Some(place),
            ".ARM.extab" => self.arm.1 = Some(place),
            ".comment" if is_plain => self.about.1 = Some(place),
            ".text" => self.text = Some(place),
            ".got" => self.got = Some(address),
            ".gopclntab" | ".data.rel.ro.gopclntab" => self.gopclntab = Some(place),
            ".note.gnu.build-id" if self.build_id.is_none() => self.build_id = build_id(offset, size),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "elf_tests.rs"]
mod tests;
