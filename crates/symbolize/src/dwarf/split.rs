//! Split DWARF: units whose entries are in a `.dwo` file of their own, or in a `.dwp` package of many.

use std::path::{Path, PathBuf};

use gimli::{Dwarf, DwarfPackageSections, DwoId, EndianSlice, LittleEndian, SectionId};

use crate::dwarf::bytes::{Bytes, Unit};
use crate::dwarf::side::Side;
use crate::dwarf::store::Store;
use crate::elf::Image;
use crate::summary::Missing;

/// Returns the path of the `.dwo` file that a skeleton unit names, relative to the unit's directory.
pub(crate) fn path<'a>(side: &Side<'a>, unit: &Unit<'a>) -> Option<PathBuf> {
    let value = unit.dwo_name().ok()??;
    let name = side.string(unit, value)?;
    Some(Path::new(&side.folder(unit)).join(name))
}

/// Prepares the DWARF in `store` for use with the `parent` of its skeleton units.
pub(crate) fn view<'a>(store: &'a Store, parent: &Dwarf<Bytes<'a>>) -> Dwarf<Bytes<'a>> {
    let mut dwarf = store.view();
    dwarf.make_dwo(parent);
    // Entries of the .dwo refer to files by their numbers in the skeleton's line table.
    dwarf.debug_line_str = parent.debug_line_str;
    dwarf
}

/// Returns the unit with this id in a `.dwo` file, with its skeleton's address information.
pub(crate) fn unit<'a>(dwarf: &Dwarf<Bytes<'a>>, id: DwoId, skeleton: &Unit<'a>) -> Option<Unit<'a>> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(mut unit) = dwarf.unit(header) else { continue };
        if unit.dwo_id == Some(id) {
            unit.copy_relocated_attributes(skeleton);
            unit.line_program = unit.line_program.or_else(|| skeleton.line_program.clone());
            return Some(unit);
        }
    }
    None
}

/// A package of `.dwo` files.
pub(crate) struct Package {
    sections: DwarfPackageSections<Vec<u8>>,
}

impl Package {
    /// Reads a `.dwp` file.
    pub fn read(image: &Image) -> Result<Self, Missing> {
        let mut unread = None;
        let sections = DwarfPackageSections::load(|id: SectionId| -> gimli::Result<Vec<u8>> {
            let section = id.dwo_name().and_then(|name| image.debug_section(name));
            let read = section.map_or(Ok(Vec::new()), |section| image.read(section));
            Ok(read.unwrap_or_else(|missing| {
                unread = Some(missing);
                Vec::new()
            }))
        });
        match (sections, unread) {
            (_, Some(missing)) => Err(missing),
            (Err(error), None) => Err(image.malformed(format!("package index: {error}"))),
            (Ok(sections), None) => Ok(Self { sections }),
        }
    }

    /// Returns the DWARF of the unit with this id.
    pub fn find<'a>(&'a self, id: DwoId, parent: &Dwarf<Bytes<'a>>) -> Option<Dwarf<Bytes<'a>>> {
        let empty = EndianSlice::new(&[], LittleEndian);
        let package = self.sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian), empty).ok()?;
        package.find_cu(id, parent).ok().flatten()
    }
}
