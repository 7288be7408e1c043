//! The bytes of a file's DWARF sections.
//!
//! `.debug_str` is often the largest section, and of its strings a profile needs a few hundred: it is read string by
//! string unless it is compressed. `.debug_loc*`, `.debug_macro` and `.debug_names` are never read.

use gimli::{Dwarf, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::summary::Missing;
use crate::symtab::string_at;

/// How gimli sees the bytes. Big-endian machines are not supported.
pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Longest string that is taken from DWARF; longer ones are cut.
const MAX_STRING: u64 = 1 << 16;
/// Bytes of `.debug_str` that are read for a first try at a string.
const FIRST_READ: u64 = 256;

/// Sections with functions, lines and what these refer to.
const NEEDED: [SectionId; 9] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStrOffsets,
];

/// The DWARF of one file.
pub(crate) struct Store<'i> {
    sections: DwarfSections<Vec<u8>>,
    strings: Strings<'i>,
}

/// Strings of `.debug_str`.
enum Strings<'i> {
    None,
    Whole(Vec<u8>),
    InFile { image: &'i Image, section: &'i Section },
}

impl<'i> Store<'i> {
    /// Reads the sections of `image`; of a `.dwo` file if `split`.
    pub fn read(image: &'i Image, split: bool) -> Result<Self, Missing> {
        let name = |id: SectionId| if split { id.dwo_name() } else { Some(id.name()) };
        let sections = DwarfSections::load(|id| -> Result<Vec<u8>, Missing> {
            let section = NEEDED.contains(&id).then(|| image.debug_section(name(id)?)).flatten();
            section.map_or(Ok(Vec::new()), |section| image.read(section))
        })?;
        let strings = match name(SectionId::DebugStr).and_then(|name| image.debug_section(name)) {
            None => Strings::None,
            Some(section) if section.compression == Compression::None => Strings::InFile { image, section },
            Some(section) => Strings::Whole(image.read(section)?),
        };
        Ok(Self { sections, strings })
    }

    /// The sections as gimli reads them.
    pub fn view(&self) -> Dwarf<Bytes<'_>> {
        self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian))
    }

    /// The string at an offset of `.debug_str`.
    pub fn string(&self, offset: usize) -> String {
        match &self.strings {
            Strings::None => String::new(),
            Strings::Whole(bytes) => string_at(bytes, offset),
            Strings::InFile { image, section } => in_file(image, section, offset as u64),
        }
    }
}

fn in_file(image: &Image, section: &Section, offset: u64) -> String {
    let rest = section.size.saturating_sub(offset);
    let mut bytes = Vec::new();
    for size in [FIRST_READ, MAX_STRING] {
        let Some(start) = section.offset.checked_add(offset) else { break };
        bytes = image.read_up_to(start, size.min(rest)).unwrap_or_default();
        if bytes.contains(&0) {
            break;
        }
    }
    string_at(&bytes, 0)
}
