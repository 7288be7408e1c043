//! The functions in an ELF file's `.symtab` or `.dynsym`, or in Go's own table.
//!
//! Of a table with 100,000 symbols a profile needs a hundred: rows are taken without their names, and a name is read
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

/// A file's functions.
#[derive(Debug, Default)]
pub(crate) struct Symtab {
    table: SymbolTable,
    strings: Strings,
}

/// A function as the linker knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Name as the linker sees it.
    pub linkage_name: String,
    /// First address.
    pub start: u64,
    /// One past the last address that is its own, as far as the table says.
    pub end: u64,
    /// The table says how long it is.
    pub has_size: bool,
    /// It begins so far behind the symbol that it is not known to be a part of it: the name is only that of the nearest symbol before.
    pub near: Option<u64>,
}

impl Named {
    /// A function with these bounds.
    pub fn new(linkage_name: String, start: u64, end: u64) -> Self {
        Self { linkage_name, start, end, has_size: true, near: None }
    }

    /// The name as it is shown: `near memcpy+0x30b04` for code that is only near a symbol.
    pub fn shown(&self) -> String {
        match self.near {
            Some(offset) => format!("near {}+{offset:#x}", demangle(&self.linkage_name)),
            None => readable_at_once(&self.linkage_name),
        }
    }
}

impl Symtab {
    /// The functions in the table of type `kind` (`SHT_SYMTAB`, `SHT_DYNSYM`); `None` if there is no such table.
    pub fn read(image: &Rc<Image>, kind: elf::SectionType) -> Result<Option<Self>, Missing> {
        Self::read_of(image, kind, is_function)
    }

    /// The functions in the table of a Go program; `None` if there is no such table.
    pub fn read_go(image: &Image) -> Result<Option<Self>, Missing> {
        let found = gopclntab::read(image)?;
        Ok(found.map(|GoFunctions { symbols, names }| Self {
            table: SymbolTable::new(symbols),
            strings: Strings::Whole(names),
        }))
    }

    /// The variables in such a table.
    pub fn read_data(image: &Rc<Image>, kind: elf::SectionType) -> Result<Option<Self>, Missing> {
        Self::read_of(image, kind, |kind, section, _| kind == elf::STT_OBJECT && !section.executable)
    }

    /// The symbols that are `wanted` by their type, section, and whether they have a name.
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
        let symbols = symbols.ok_or_else(|| {
            image.malformed(format!("{} at offset {:#x} has half a row", section.name, section.offset))
        })?;
        Ok(Some(Self { table: SymbolTable::new(symbols), strings }))
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Names and first addresses of all.
    pub fn all(&self) -> impl Iterator<Item = (String, u64)> {
        self.table.symbols().iter().map(|symbol| (self.name(symbol), symbol.start))
    }

    /// The function that `address` belongs to.
    pub fn find(&self, address: u64) -> Option<Named> {
        let symbol = self.table.find(address, |symbol| self.name(symbol))?;
        let has_size = symbol.size > 0;
        Some(Named { has_size, ..Named::new(self.name(&symbol), symbol.start, symbol.limit) })
    }

    fn name(&self, symbol: &Symbol) -> String {
        self.strings.get(symbol.name.into())
    }
}

/// Addresses of functions that say which function is meant (`STT_GNU_IFUNC`); none if there is no such table.
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

fn is_function(kind: elf::SymbolType, section: &Section, has_name: bool) -> bool {
    match kind {
        elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
        // A label in assembly without a type. Those of Arm and RISC-V that begin with $ mark data in code.
        elf::STT_NOTYPE => section.executable && has_name,
        _ => false,
    }
}

/// The rows that are wanted; `None` if the table is no whole number of rows.
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
        // Bit 0 says "Thumb code" on 32-bit Arm.
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

/// Where data begins that lies among code, in order: a function without a size ends there at the latest. (Poly/ML has all its code in such.)
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

/// One past the last address of a section.
fn limit(section: &Section) -> u64 {
    section.address.saturating_add(section.size)
}
