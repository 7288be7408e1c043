//! The bytes of a file's DWARF sections.
//!
//! `.debug_loc*`, `.debug_macro` and `.debug_names` are never read.

use std::path::Path;
use std::rc::Rc;

use gimli::{Dwarf, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::inflated;
use crate::strings::Strings;
use crate::summary::Missing;

/// How gimli sees the bytes. Big-endian machines are not supported.
pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

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
pub(crate) struct Store {
    sections: DwarfSections<Vec<u8>>,
    strings: Strings,
}

/// About how many bytes the DWARF of `image` takes in memory.
pub(crate) fn bytes(image: &Image) -> u64 {
    // Compressed debug information is three times as large as it is stored.
    let size = |section: &Section| match section.compression {
        Compression::None => section.size,
        Compression::Header | Compression::OldGnu => section.size.saturating_mul(3),
    };
    let sections = NEEDED.iter().filter_map(|id| image.debug_section(id.name())).map(size);
    sections.fold(0, u64::saturating_add)
}

impl Store {
    /// Reads the sections of `image`; of a `.dwo` file if `split`. What had to be inflated is kept in `cache`.
    pub fn read(image: &Rc<Image>, split: bool, cache: Option<&Path>) -> Result<Self, Missing> {
        let name = |id: SectionId| if split { id.dwo_name() } else { Some(id.name()) };
        let sections = DwarfSections::load(|id| -> Result<Vec<u8>, Missing> {
            let section = NEEDED.contains(&id).then(|| image.debug_section(name(id)?)).flatten();
            section.map_or(Ok(Vec::new()), |section| inflated::read(image, section, cache))
        })?;
        let strings = name(SectionId::DebugStr).and_then(|name| image.debug_section(name));
        let strings = strings.map(|section| Strings::read(image, section)).transpose()?.unwrap_or_default();
        Ok(Self { sections, strings })
    }

    /// The sections as gimli reads them.
    pub fn view(&self) -> Dwarf<Bytes<'_>> {
        self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian))
    }

    /// The string at an offset of `.debug_str`.
    pub fn string(&self, offset: usize) -> String {
        self.strings.get(offset as u64)
    }
}
