//! The bytes of a file's DWARF sections.
//!
//! `.debug_loc*`, `.debug_macro` and `.debug_names` are never read.

use std::path::Path;
use std::rc::Rc;

use gimli::{Dwarf, DwarfSections, EndianSlice, LittleEndian, SectionId};

use crate::dwarf::bytes::Bytes;
use crate::dwarf::part::Part;
use crate::elf::Image;
use crate::headers::{Compression, INFLATED, Section};
use crate::inflated::Contents;
use crate::strings::Strings;
use crate::summary::Missing;

/// Sections with functions, lines and the data these refer to.
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
    /// Whether only the parts for some addresses were read.
    pub is_part: bool,
}

/// Returns the approximate memory for the DWARF of `image`, in bytes, including derived data.
pub(crate) fn bytes(image: &Image) -> u64 {
    let size = |section: &Section| match section.compression {
        Compression::None => section.size,
        Compression::Header | Compression::OldGnu => section.size.saturating_mul(INFLATED),
    };
    let sections = NEEDED.iter().filter_map(|id| image.debug_section(id.name())).map(size);
    let strings = image.debug_section(SectionId::DebugStr.name()).map_or(0, Strings::bytes);
    let read = sections.fold(strings, u64::saturating_add);
    // Abbreviations, functions and rows take about half as much again (measured on compilers).
    read.saturating_add(read / 2)
}

impl Store {
    /// Reads the sections of `image`; those of a `.dwo` file if `split`. Decompressed sections are stored in `cache`.
    pub fn read(image: &Rc<Image>, split: bool, cache: Option<&Path>) -> Result<Self, Missing> {
        let sections = Sections { image, split, cache };
        let read = |id| sections.open(id)?.map_or(Ok(Vec::new()), Contents::all);
        Ok(Self { sections: DwarfSections::load(read)?, strings: sections.strings()?, is_part: false })
    }

    /// Reads only what the units of the `wanted` addresses (sorted) need. `None` if these units cannot be determined
    /// without reading everything.
    pub fn read_part(
        image: &Rc<Image>,
        wanted: &[u64],
        cache: Option<&Path>,
    ) -> Result<Option<Self>, Missing> {
        let sections = Sections { image, split: false, cache };
        let Some(mut part) = Part::find(|id| sections.open(id), wanted)? else { return Ok(None) };
        let read = |id| match id {
            SectionId::DebugAranges => Ok(std::mem::take(&mut part.aranges)),
            SectionId::DebugInfo => Ok(std::mem::take(&mut part.info)),
            SectionId::DebugAbbrev => Ok(std::mem::take(&mut part.abbrev)),
            SectionId::DebugLine => Ok(std::mem::take(&mut part.line)),
            id => sections.open(id)?.map_or(Ok(Vec::new()), Contents::all),
        };
        Ok(Some(Self { sections: DwarfSections::load(read)?, strings: sections.strings()?, is_part: true }))
    }

    /// Returns the sections as gimli reads them.
    pub fn view(&self) -> Dwarf<Bytes<'_>> {
        self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian))
    }

    /// Returns the string at an offset of `.debug_str`.
    pub fn string(&self, offset: usize) -> String {
        self.strings.get(offset as u64)
    }
}

/// The source of the sections.
struct Sections<'i> {
    image: &'i Rc<Image>,
    split: bool,
    cache: Option<&'i Path>,
}

impl<'i> Sections<'i> {
    fn section(&self, id: SectionId) -> Option<&'i Section> {
        self.image.debug_section(if self.split { id.dwo_name()? } else { id.name() })
    }

    /// Opens a needed section, if it exists.
    fn open(&self, id: SectionId) -> Result<Option<Contents<'i>>, Missing> {
        let section = NEEDED.contains(&id).then(|| self.section(id)).flatten();
        section.map(|section| Contents::open(self.image, section, self.cache)).transpose()
    }

    fn strings(&self) -> Result<Strings, Missing> {
        let Some(section) = self.section(SectionId::DebugStr) else { return Ok(Strings::default()) };
        if section.compression == Compression::None {
            return Strings::read(self.image, section);
        }
        Contents::open(self.image, section, self.cache)?.all().map(Strings::Whole)
    }
}
