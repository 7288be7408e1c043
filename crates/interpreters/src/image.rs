//! Where things of an ELF file are.

use std::fs::File;
use std::ops::Range;

use object::{Object, ObjectSegment, ObjectSymbol, ReadCache};

use crate::Mapped;

type Elf<'c> = object::read::elf::ElfFile64<'c, object::Endianness, &'c ReadCache<&'c File>>;

/// More symbols than any file has.
const MAX_SYMBOLS: usize = 4 << 20;

/// A symbol that is looked for.
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    /// So many bytes are read from there at most.
    pub(crate) bytes: usize,
}

/// What was looked for in a file.
pub(crate) struct Image {
    found: Vec<Found>,
}

/// Something that a symbol names.
struct Found {
    name: &'static str,
    /// Its stated address.
    address: u64,
    size: u64,
    /// Its first bytes in the file.
    content: Vec<u8>,
}

impl Image {
    /// Looks for symbols in a file; first in the table that is always there. `None` if there are none of them.
    pub(crate) fn read(file: &File, wanted: &[Wanted], all_symbols: bool) -> Option<Image> {
        let cache = ReadCache::new(file);
        let elf = Elf::parse(&cache).ok()?;
        let mut found: Vec<Found> = Vec::new();
        let others = elf.symbols().take(if all_symbols { MAX_SYMBOLS } else { 0 });
        for symbol in elf.dynamic_symbols().take(MAX_SYMBOLS).chain(others) {
            if found.len() == wanted.len() {
                break;
            }
            let Some(wanted) =
                symbol.name().ok().and_then(|name| wanted.iter().find(|wanted| wanted.name == name))
            else {
                continue;
            };
            let name = wanted.name;
            if symbol.is_definition() && !found.iter().any(|other| other.name == name) {
                let (address, size) = (symbol.address(), symbol.size());
                found.push(Found { name, address, size, content: content(&elf, address, wanted.bytes) });
            }
        }
        (!found.is_empty()).then_some(Image { found })
    }

    /// The stated address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.found.iter().find(|other| other.name == name).map(|found| found.address)
    }

    /// The stated addresses of what a symbol names.
    pub(crate) fn range(&self, name: &str) -> Option<Range<u64>> {
        let found = self.found.iter().find(|other| other.name == name)?;
        Some(found.address..found.address.checked_add(found.size)?)
    }

    /// The bytes that the file has at a symbol, as many as were wanted at most.
    pub(crate) fn content(&self, name: &str) -> Option<&[u8]> {
        self.found.iter().find(|other| other.name == name).map(|found| found.content.as_slice())
    }

    /// The number that the file has at a symbol.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.content(name)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

fn content(elf: &Elf<'_>, address: u64, most: usize) -> Vec<u8> {
    let mut parts = elf.segments().filter_map(|segment| {
        let from = usize::try_from(address.checked_sub(segment.address())?).ok()?;
        let bytes = segment.data().ok()?.get(from..)?;
        Some(bytes.get(..most).unwrap_or(bytes).to_vec())
    });
    if most == 0 { Vec::new() } else { parts.next().unwrap_or_default() }
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
