//! Symbols and contents of an ELF file, at the addresses that the file states.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use object::read::elf::Sym as _;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, ReadCache, RelocationTarget,
    SegmentFlags,
};
use plumb_unwind::Isa;

use crate::Mapped;

type Reader<'c> = &'c ReadCache<&'c File>;
type Elf<'c> = object::read::elf::ElfFile64<'c, object::Endianness, Reader<'c>>;
type SymbolTable<'c> =
    object::read::elf::SymbolTable<'c, object::elf::FileHeader64<object::Endianness>, Reader<'c>>;

/// Limit on symbols; no file has as many.
const MAX_SYMBOLS: usize = 4 << 20;
/// Limit on the bytes of symbol names; no file has as many.
const MAX_NAMES: u64 = 64 << 20;

/// Limit on the bytes of code that are searched.
const MAX_CODE: u64 = 64 << 20;

/// Longest text that is searched for, in bytes.
const MAX_TEXT: usize = 64;

/// A symbol to search for.
pub(crate) struct Wanted {
    pub(crate) name: &'static str,
    /// Most bytes to read at the symbol.
    pub(crate) bytes: usize,
}

/// The symbols found in a file.
pub(crate) struct Image {
    found: Vec<Found>,
}

/// A symbol that was found.
struct Found {
    name: &'static str,
    /// Address stated in the file.
    address: u64,
    size: u64,
    /// First bytes at the symbol in the file.
    content: Vec<u8>,
}

impl Image {
    /// Searches for symbols in a file: first in the dynamic symbol table, which is always present, then, if `all_symbols`, in the full one. Returns
    /// `None` if none is found.
    pub(crate) fn read(file: &File, wanted: &[&[Wanted]], all_symbols: bool) -> Option<Image> {
        let cache = ReadCache::new(file);
        let elf = Elf::parse(&cache).ok()?;
        let mut found: Vec<Found> = Vec::new();
        let tables = [Some(elf.elf_dynamic_symbol_table()), all_symbols.then(|| elf.elf_symbol_table())];
        for table in tables.into_iter().flatten() {
            look_in(table, &elf, file, wanted, &mut found);
        }
        (!found.is_empty()).then_some(Image { found })
    }

    /// Stated address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        self.found.iter().find(|other| other.name == name).map(|found| found.address)
    }

    /// Stated address range of a symbol.
    pub(crate) fn range(&self, name: &str) -> Option<Range<u64>> {
        let found = self.found.iter().find(|other| other.name == name)?;
        Some(found.address..found.address.checked_add(found.size)?)
    }

    /// The file's bytes at a symbol, as many as were requested at most.
    pub(crate) fn content(&self, name: &str) -> Option<&[u8]> {
        self.found.iter().find(|other| other.name == name).map(|found| found.content.as_slice())
    }

    /// The 32-bit number at a symbol in the file.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.content(name)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

impl Image {
    /// The number at a symbol in the file, of as many bytes as the symbol has, at most four.
    pub(crate) fn sized_number(&self, name: &str) -> Option<u32> {
        let found = self.found.iter().find(|other| other.name == name)?;
        let unused = 4_u64.checked_sub(found.size.clamp(1, 4))? * 8;
        Some(self.number(name)? & u32::MAX >> unused)
    }
}

/// Stated address of a section.
pub(crate) fn section(file: &File, name: &str) -> Option<u64> {
    let cache = ReadCache::new(file);
    Some(Elf::parse(&cache).ok()?.section_by_name(name)?.address())
}

/// Stated addresses of a file's variables.
pub(crate) fn variables(file: &File) -> Vec<Range<u64>> {
    let cache = ReadCache::new(file);
    let Ok(elf) = Elf::parse(&cache) else { return Vec::new() };
    let is_writable =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_W));
    let variables = elf.segments().filter(|segment| is_writable(segment.flags()));
    variables.filter_map(|part| Some(part.address()..part.address().checked_add(part.size())?)).collect()
}

/// Processor of a file's code, if it is one whose stacks can be walked.
pub(crate) fn isa(file: &File) -> Option<Isa> {
    isa_of(&Elf::parse(&ReadCache::new(file)).ok()?)
}

fn isa_of(elf: &Elf<'_>) -> Option<Isa> {
    match elf.architecture() {
        object::Architecture::X86_64 => Some(Isa::X86_64),
        object::Architecture::Aarch64 => Some(Isa::Aarch64),
        _ => None,
    }
}

/// Size of `pthread_mutex_t` in the C library that a file needs: `__SIZEOF_PTHREAD_MUTEX_T` of glibc's bits/pthreadtypes-arch.h, and of musl's
/// bits/alltypes.h, which has the same for all 64-bit processors.
pub(crate) fn mutex_bytes(file: &File) -> Option<u32> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    let is_musl = || {
        elf.section_by_name(".dynstr")
            .and_then(|names| names.data().ok())
            .is_some_and(|names| memchr::memmem::find(names, b"libc.musl-").is_some())
    };
    Some(if isa_of(&elf) == Some(Isa::Aarch64) && !is_musl() { 48 } else { 40 })
}

/// Searches one symbol table. Reads all names at once, because reading each one is a system call.
fn look_in<'c>(
    table: &SymbolTable<'c>,
    elf: &Elf<'c>,
    file: &File,
    wanted: &[&[Wanted]],
    found: &mut Vec<Found>,
) {
    let strings =
        elf.section_by_index(table.string_section()).ok().filter(|strings| strings.size() < MAX_NAMES);
    let Some(names) = strings.and_then(|strings| strings.data().ok()) else { return };
    let endian = elf.endian();
    for symbol in table.iter().take(MAX_SYMBOLS) {
        let Some(name) = names.get(symbol.st_name(endian) as usize..) else { continue };
        let is_it = |other: &&Wanted| {
            name.strip_prefix(other.name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
        };
        let Some(wanted) = wanted.iter().copied().flatten().find(is_it) else { continue };
        let name = wanted.name;
        if symbol.is_definition(endian, table.strings()) && !found.iter().any(|other| other.name == name) {
            let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
            found.push(Found { name, address, size, content: content(elf, file, address, wanted.bytes) });
        }
    }
}

/// The file's bytes at a stated address, at most `most`.
fn content(elf: &Elf<'_>, file: &File, address: u64, most: usize) -> Vec<u8> {
    let place = elf.segments().find_map(|segment| {
        let from = address.checked_sub(segment.address())?;
        let (start, size) = segment.file_range();
        Some((start.checked_add(from)?, size.checked_sub(from)?))
    });
    let Some((offset, size)) = place else { return Vec::new() };
    let mut bytes = vec![0; most.min(usize::try_from(size).unwrap_or(most))];
    if file.read_exact_at(&mut bytes, offset).is_ok() { bytes } else { Vec::new() }
}

/// The text in `.rodata` that follows `before`, up to the first non-printable character.
pub(crate) fn text_after(file: &File, before: &[u8]) -> Option<String> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    let section = elf.section_by_name(".rodata").filter(|section| section.size() < MAX_NAMES)?;
    let bytes = section.data().ok()?;
    let at = memchr::memmem::find(bytes, before)?;
    let rest = bytes.get(at + before.len()..)?;
    let text = rest.iter().take(MAX_TEXT).take_while(|byte| byte.is_ascii_graphic());
    Some(text.map(|&byte| char::from(byte)).collect())
}

/// The code of a file at its stated address.
pub(crate) struct Code {
    pub(crate) isa: Isa,
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
    /// Start addresses of functions in ascending order.
    pub(crate) functions: Vec<u64>,
}

/// Reads `.text`, and the list of functions in `.eh_frame_hdr`.
pub(crate) fn code(file: &File) -> Option<Code> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    let isa = isa_of(&elf)?;
    let text = elf.section_by_name(".text").filter(|text| text.size() < MAX_CODE)?;
    Some(Code { isa, at: text.address(), bytes: text.data().ok()?.to_vec(), functions: functions(&elf)? })
}

/// Start addresses of functions in ascending order, from an `.eh_frame_hdr` in its usual form (LSB core).
fn functions(elf: &Elf<'_>) -> Option<Vec<u64>> {
    /// The version, and the encoding of a table of pairs of signed words relative to the section.
    const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
    let section = elf.section_by_name(".eh_frame_hdr").filter(|section| section.size() < MAX_NAMES)?;
    let (form, rest) = section.data().ok()?.split_first_chunk()?;
    let table = rest.get(8..).filter(|_| *form == FORM)?;
    let begin = |pair: &[u8; 8]| {
        let distance = i32::from_le_bytes(*pair.first_chunk().unwrap_or(&[0; 4]));
        section.address().wrapping_add_signed(distance.into())
    };
    Some(table.as_chunks().0.iter().map(begin).collect())
}

/// The address that the dynamic linker writes to a word, if it does, in a file whose own it is.
pub(crate) fn linked_address(file: &File, word: u64) -> Option<u64> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    let (_, relocation) = elf.dynamic_relocations()?.take(MAX_SYMBOLS).find(|&(at, _)| at == word)?;
    match relocation.target() {
        RelocationTarget::Absolute => Some(relocation.addend() as u64),
        RelocationTarget::Symbol(index) => {
            elf.dynamic_symbol_table()?.symbol_by_index(index).ok().map(|symbol| symbol.address())
        }
        _ => None,
    }
    .filter(|&address| address != 0)
}

/// See [`crate::bias`].
pub(crate) fn bias(file: &File, mapped: Mapped) -> Option<u64> {
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).ok()?;
    elf.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        // Mappings start at a page boundary.
        let range = start & !0xfff..start.checked_add(size)?;
        let stated = segment.address().wrapping_sub(start).wrapping_add(mapped.offset);
        range.contains(&mapped.offset).then(|| mapped.start.wrapping_sub(stated))
    })
}
