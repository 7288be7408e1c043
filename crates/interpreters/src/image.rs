//! Where things of an ELF file are.

use std::fs::File;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};

use crate::Mapped;

type Elf<'c> = object::read::elf::ElfFile64<'c, object::Endianness, &'c ReadCache<&'c File>>;

/// More symbols than any file has.
const MAX_SYMBOLS: usize = 4 << 20;

/// What was looked for in a file.
pub(crate) struct Image {
    found: Vec<Found>,
}

/// Something that a symbol names.
struct Found {
    name: &'static str,
    /// Its stated address.
    address: u64,
    /// Its first four bytes in the file.
    content: Option<[u8; 4]>,
}

impl Image {
    /// Looks for symbols in a file; first in the table that is always there. `None` if there are none of them.
    pub(crate) fn read(file: &File, wanted: &[&'static str], all_symbols: bool) -> Option<Image> {
        let cache = ReadCache::new(file);
        let elf = Elf::parse(&cache).ok()?;
        let mut found: Vec<Found> = Vec::new();
        let others = elf.symbols().take(if all_symbols { MAX_SYMBOLS } else { 0 });
        for symbol in elf.dynamic_symbols().take(MAX_SYMBOLS).chain(others) {
            if found.len() == wanted.len() {
                break;
            }
            let Some(&name) = symbol.name().ok().and_then(|name| wanted.iter().find(|&&other| other == name))
            else {
                continue;
            };
            if symbol.is_definition() && !found.iter().any(|other| other.name == name) {
                let address = symbol.address();
                found.push(Found { name, address, content: content(&elf, address) });
            }
        }
        (!found.is_empty()).then_some(Image { found })
    }

    /// The stated address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.found.iter().find(|other| other.name == name).map(|found| found.address)
    }

    /// The number that the file has at a symbol.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        let found = self.found.iter().find(|other| other.name == name)?;
        found.content.map(u32::from_le_bytes)
    }
}

fn content(elf: &Elf<'_>, address: u64) -> Option<[u8; 4]> {
    let bytes = |segment: object::read::elf::ElfSegment64<'_, '_, object::Endianness, &ReadCache<&File>>| {
        segment.data_range(address, 4).ok().flatten().and_then(|bytes| bytes.try_into().ok())
    };
    elf.segments().find_map(bytes)
}

/// See [`crate::bias`].
pub(crate) fn bias(file: &File, mapped: Mapped) -> Option<u64> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    elf.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        // What is mapped begins with a whole page.
        let range = start & !0xfff..start.checked_add(size)?;
        let stated = segment.address().wrapping_sub(start).wrapping_add(mapped.offset);
        range.contains(&mapped.offset).then(|| mapped.start.wrapping_sub(stated))
    })
}
