//! Where things of an ELF file are in memory.

use std::fs::File;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};

use crate::Mapped;

/// More symbols than any file has.
const MAX_SYMBOLS: usize = 4 << 20;

/// What was looked for in a file.
pub(crate) struct Image {
    /// Names and addresses at run time.
    found: Vec<(&'static str, u64)>,
}

impl Image {
    /// Looks for symbols in a file that is mapped; first in the table that is always there. `None` if there are none of
    /// them.
    pub(crate) fn read(file: &File, mapped: Mapped, wanted: &[&'static str]) -> Option<Image> {
        let cache = ReadCache::new(file);
        let elf = object::read::elf::ElfFile64::<object::Endianness, _>::parse(&cache).ok()?;
        let bias = elf.segments().find_map(|segment| {
            let (start, size) = segment.file_range();
            // What is mapped begins with a whole page.
            let range = start & !0xfff..start.checked_add(size)?;
            let stated = segment.address().wrapping_sub(start).wrapping_add(mapped.offset);
            range.contains(&mapped.offset).then(|| mapped.start.wrapping_sub(stated))
        })?;
        let mut found = Vec::new();
        for symbol in elf.dynamic_symbols().chain(elf.symbols()).take(MAX_SYMBOLS) {
            if found.len() == wanted.len() {
                break;
            }
            let Some(&name) = symbol.name().ok().and_then(|name| wanted.iter().find(|&&other| other == name))
            else {
                continue;
            };
            if symbol.is_definition() && !found.iter().any(|(other, _)| *other == name) {
                found.push((name, symbol.address().wrapping_add(bias)));
            }
        }
        (!found.is_empty()).then_some(Image { found })
    }

    /// The address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.found.iter().find(|(other, _)| *other == name).map(|&(_, address)| address)
    }
}
