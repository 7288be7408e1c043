//! The functions in an ELF file's `.symtab` or `.dynsym`, or in Go's own table.
//!
//! A profile needs a hundred of a table's 100,000 symbols: rows are kept without names, and a name is read
//! when its row is chosen.

use std::rc::Rc;

use object::elf::{self, Sym32, Sym64};
use object::read::elf::Sym;
use object::{Endianness, pod};

use crate::demangle::{demangle, readable_at_once};
use crate::elf::Image;
use crate::gopclntab::{self, GoFunctions};
use crate::headers::Section;
use crate::strings::Strings;
use crate::summary::Missing;
use crate::table::{Bind, Symbol, SymbolTable};

/// The functions of a file.
#[derive(Debug, Default)]
pub(crate) struct Symtab {
    table: SymbolTable,
    strings: Strings,
}

/// A function according to the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Linkage name.
    pub linkage_name: String,
    /// First address.
    pub start: u64,
    /// One past its last address, as far as the table shows.
    pub end: u64,
    /// Whether the table has its size.
    pub has_size: bool,
    /// Offset from the symbol, if too large to be certain that the code belongs to it: the name is only that of the nearest preceding symbol.
    pub near: Option<u64>,
}

impl Named {
    /// Creates a function with these bounds and a known size.
    pub fn new(linkage_name: String, start: u64, end: u64) -> Self {
        Self { linkage_name, start, end, has_size: true, near: None }
    }

    /// Returns the name to show: `near memcpy+0x30b04` for code that is only near a symbol.
    pub fn shown(&self) -> String {
        match self.near {
            Some(offset) => format!("near {}+{offset:#x}", demangle(&self.linkage_name)),
            None => readable_at_once(&self.linkage_name),
        }
    }
}

impl Symtab {
    /// Reads the functions in the table of type `kind` (`SHT_SYMTAB`, `SHT_DYNSYM`); `None` without such a table.
    pub fn read(image: &Rc<Image>, kind: elf::SectionType) -> Result<Option<Self>, Missing> {
        Self::read_of(image, kind, is_function)
    }

    /// Reads the functions in a Go program's own table; `None` without one.
    pub fn read_go(image: &Image) -> Result<Option<Self>, Missing> {
        let found = gopclntab::read(image)?;
        Ok(found.map(|GoFunctions { symbols, names }| Self {
            table: SymbolTable::new(symbols),
            strings: Strings::Whole(names),
        }))
    }

    /// Reads the variables in such a table.
    pub fn read_data(image: &Rc<Image>, kind: elf::SectionType) -> Result<Option<Self>, Missing> {
        Self::read_of(image, kind, |kind, section, _| kind == elf::STT_OBJECT && !section.executable)
    }

    /// Reads the symbols that `wanted` selects by type, section, and whether they have a name.
    fn read_of(
        image: &Rc<Image>,
        kind: elf::SectionType,
        wanted: fn(elf::SymbolType, &Section, bool) -> bool,
    ) -> Result<Option<Self>, Missing> {
        let Some(section) = image.section_of(kind).filter(|section| section.size > 0) else {
            return Ok(None);
        };
        let rows = image.read(section)?;
        let strings = image.sections.get(section.link).filter(|strings| strings.kind == elf::SHT_STRTAB);
        let strings = strings.ok_or_else(|| image.malformed(format!("{} has no strings", section.name)))?;
        let strings = Strings::read(image, strings)?;
        let symbols = if image.form.is_64 {
            symbols::<Sym64<Endianness>>(&rows, image, wanted)
        } else {
            symbols::<Sym32<Endianness>>(&rows, image, wanted)
        };
        let mut symbols = symbols.ok_or_else(|| {
            image.malformed(format!("{} at offset {:#x} has half a row", section.name, section.offset))
        })?;
        if matches!(image.machine, elf::EM_ARM | elf::EM_AARCH64 | elf::EM_RISCV) {
            symbols.retain(|symbol| !is_mapping(symbol, &strings));
        }
        Ok(Some(Self { table: SymbolTable::new(symbols), strings }))
    }

    /// Returns the number of functions.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns names and first addresses of all functions.
    pub fn all(&self) -> impl Iterator<Item = (String, u64)> {
        self.table.symbols().iter().map(|symbol| (self.name(symbol), symbol.start))
    }

    /// Returns the start of each function, where it ends by the table, and whether the table has its size.
    pub fn bounds(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        self.table.symbols().iter().map(|symbol| (symbol.start, symbol.limit, symbol.size > 0))
    }

    /// Returns the first address after this one where a function begins.
    pub fn next_start(&self, address: u64) -> Option<u64> {
        let symbols = self.table.symbols();
        symbols.get(symbols.partition_point(|symbol| symbol.start <= address)).map(|symbol| symbol.start)
    }

    /// Returns the function that contains `address`.
    pub fn find(&self, address: u64) -> Option<Named> {
        let symbol = self.table.find(address, |symbol| self.name(symbol))?;
        let has_size = symbol.size > 0;
        Some(Named { has_size, ..Named::new(self.name(&symbol), symbol.start, symbol.limit) })
    }

    fn name(&self, symbol: &Symbol) -> String {
        self.strings.get(symbol.name.into())
    }
}

/// Returns the addresses of indirect functions (`STT_GNU_IFUNC`), which select an implementation; empty without such a table.
pub(crate) fn indirect(image: &Image, kind: elf::SectionType) -> Vec<u64> {
    let Some(rows) = image.section_of(kind).and_then(|section| image.read(section).ok()) else {
        return Vec::new();
    };
    fn of<S: Sym<Endian = Endianness> + pod::Pod>(rows: &[u8], endian: Endianness) -> Vec<u64> {
        let rows: &[S] = pod::slice_from_all_bytes(rows).unwrap_or_default();
        let is_indirect = |row: &&S| row.st_type() == elf::STT_GNU_IFUNC;
        rows.iter().filter(is_indirect).map(|row| row.st_value(endian).into()).collect()
    }
    match image.form.is_64 {
        true => of::<Sym64<Endianness>>(&rows, image.form.endian),
        false => of::<Sym32<Endianness>>(&rows, image.form.endian),
    }
}

/// Whether a symbol only marks where code or data begins: `$x`, `$d`, `$a`, `$t`, and what follows a dot (ELF for the Arm 64-bit Architecture,
/// 5.5.5; RISC-V ELF psABI, mapping symbols).
fn is_mapping(symbol: &Symbol, strings: &Strings) -> bool {
    if symbol.size > 0 || symbol.bind != Bind::Local {
        return false;
    }
    let name = strings.get(symbol.name.into());
    let kind = name.strip_prefix(['$']).and_then(|kind| kind.strip_prefix(['x', 'd', 'a', 't']));
    kind.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', 'r']))
}

fn is_function(kind: elf::SymbolType, section: &Section, has_name: bool) -> bool {
    match kind {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        // An untyped label in assembly.
        elf::STT_NOTYPE => section.executable && has_name,
        _ => false,
    }
}

/// Returns the wanted rows; `None` if the table's size is not a multiple of the row size.
fn symbols<S: Sym<Endian = Endianness> + pod::Pod>(
    rows: &[u8],
    image: &Image,
    wanted: fn(elf::SymbolType, &Section, bool) -> bool,
) -> Option<Vec<Symbol>> {
    let endian = image.form.endian;
    let rows: &[S] = pod::slice_from_all_bytes(rows).ok()?;
    let data = data_in_code(rows, image);
    let symbols = rows.iter().filter_map(|row| {
        let section = image.sections.get(usize::from(row.st_shndx(endian).0))?;
        let is_wanted = wanted(row.st_type(), section, row.st_name(endian) != 0);
        if !is_wanted || row.st_shndx(endian) == elf::SHN_UNDEF {
            return None;
        }
        // On 32-bit Arm, bit 0 means "Thumb code".
        let start = row.st_value(endian).into() & if image.machine == elf::EM_ARM { !1 } else { !0 };
        let after = data.get(data.partition_point(|&data| data <= start));
        Some(Symbol {
            start,
            size: row.st_size(endian).into(),
            limit: limit(section).min(after.copied().unwrap_or(u64::MAX)),
            name: row.st_name(endian),
            bind: match row.st_bind() {
                elf::STB_LOCAL => Bind::Local,
                elf::STB_WEAK => Bind::Weak,
                _ => Bind::Global,
            },
        })
    });
    Some(symbols.collect())
}

/// Returns the sorted starts of data within code, where a function without a size ends at the latest. (Poly/ML stores all its code in such data.)
fn data_in_code<S: Sym<Endian = Endianness>>(rows: &[S], image: &Image) -> Vec<u64> {
    let endian = image.form.endian;
    let in_code = |row: &&S| {
        let section = image.sections.get(usize::from(row.st_shndx(endian).0));
        row.st_type() == elf::STT_OBJECT && section.is_some_and(|section| section.executable)
    };
    let mut starts: Vec<u64> = rows.iter().filter(in_code).map(|row| row.st_value(endian).into()).collect();
    starts.sort_unstable();
    starts
}

/// Returns one past the last address of a section.
fn limit(section: &Section) -> u64 {
    section.address.saturating_add(section.size)
}
