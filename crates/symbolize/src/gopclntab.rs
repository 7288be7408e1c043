//! The functions of a Go program by the table that its own tracebacks use, `.gopclntab`: it is there after stripping too.
//!
//! Go 1.16 and newer (`pcHeader` and `_func` in runtime/symtab.go, debug/gosym/pclntab.go). Offsets of functions count from
//! `runtime.text`, which the table says itself up to Go 1.25, unless the program is position-independent. Otherwise it is in the
//! runtime's `moduledata`, which is found by its first word, the address of the table: in the data, or in the relocations that write
//! it there. What that says about the first and the last function has to agree with the table.
//!
//! Not here: the steps of the stack pointer (`plumb_unwind::go`), lines, inlined calls.

use object::elf::{self, Rela64};
use object::{Endianness, pod};

use crate::elf::Image;
use crate::headers::Section;
use crate::summary::Missing;
use crate::table::{Bind, Symbol};

/// Words of `moduledata`: the table, the addresses of the first function and behind the last, and `runtime.text`.
const MIN_PC: u64 = 20;
const MAX_PC: u64 = 21;
const TEXT: u64 = 22;
/// No more functions than the largest programs have several times over.
const MAX_FUNCTIONS: usize = 8 << 20;

/// The functions, and where their names are.
#[derive(Debug)]
pub(crate) struct GoFunctions {
    pub symbols: Vec<Symbol>,
    /// Names end with 0; symbols say where in this they begin.
    pub names: Vec<u8>,
}

/// How entries of the table are laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Go 1.16: addresses of eight bytes.
    Addresses,
    /// Go 1.18: distances of four bytes from `runtime.text`.
    Distances,
}

/// The table.
struct Table<'a> {
    bytes: &'a [u8],
    layout: Layout,
    functions: usize,
    list: &'a [u8],
    /// Where `runtime.text` is, if the table says so.
    text: Option<u64>,
    names: &'a [u8],
}

/// The functions of a Go program of x86-64 or aarch64; `None`: it is none, or of another version.
pub(crate) fn read(image: &Image) -> Result<Option<GoFunctions>, Missing> {
    let sections = [".gopclntab", ".data.rel.ro.gopclntab"];
    let Some(section) = sections.iter().find_map(|name| image.section(name)) else { return Ok(None) };
    if !image.form.is_64 || image.form.endian != Endianness::Little {
        return Ok(None);
    }
    let bytes = image.read(section)?;
    let Some(table) = Table::read(&bytes) else { return Ok(None) };
    let base = match table.layout {
        Layout::Addresses => Some(0),
        Layout::Distances => table.text.or_else(|| text_of_module(image, section, &table)),
    };
    let Some(base) = base else {
        return Err(image.malformed("no module data of Go says where the functions of .gopclntab are".into()));
    };
    Ok(Some(GoFunctions { symbols: table.symbols(base), names: table.names.to_vec() }))
}

impl<'a> Table<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (layout, first) = match u32_at(bytes, 0)? {
            0xffff_fffa => (Layout::Addresses, 3),
            0xffff_fff0 | 0xffff_fff1 => (Layout::Distances, 4),
            _ => return None,
        };
        if *bytes.get(7)? != 8 {
            return None;
        }
        let word = |index: usize| u64_at(bytes, 8 * index);
        let part = |index: usize| bytes.get(usize::try_from(word(index)?).ok()?..);
        let functions = usize::try_from(word(1)?).ok().filter(|&count| count <= MAX_FUNCTIONS)?;
        let text = word(3).filter(|&text| layout == Layout::Distances && text != 0);
        let (names, list) = (part(first)?, part(first + 4)?);
        // Names end where the next part begins.
        let length =
            word(first + 1)?.checked_sub(word(first)?).and_then(|length| usize::try_from(length).ok());
        let names = length.and_then(|length| names.get(..length)).unwrap_or(names);
        Some(Self { bytes: list, layout, functions, list, text, names })
    }

    /// Where the function of that number begins, as the table counts; behind the last one that is where it ends.
    fn begin(&self, index: usize) -> Option<u64> {
        match self.layout {
            Layout::Addresses => u64_at(self.list, index.checked_mul(16)?),
            Layout::Distances => u32_at(self.list, index.checked_mul(8)?).map(u64::from),
        }
    }

    /// Where its name is.
    fn name(&self, index: usize) -> Option<u32> {
        let (entry, name) = match self.layout {
            Layout::Addresses => (u64_at(self.list, index.checked_mul(16)?.checked_add(8)?)?, 8),
            Layout::Distances => (u32_at(self.list, index.checked_mul(8)?.checked_add(4)?)?.into(), 4),
        };
        u32_at(self.bytes, usize::try_from(entry).ok()?.checked_add(name)?)
    }

    fn symbols(&self, base: u64) -> Vec<Symbol> {
        let symbol = |index| {
            let (begin, end) = (self.begin(index)?, self.begin(index + 1)?);
            let size = end.checked_sub(begin).filter(|&size| size > 0)?;
            let start = base.checked_add(begin)?;
            let limit = start.checked_add(size)?;
            Some(Symbol { start, size, limit, name: self.name(index)?, bind: Bind::Global })
        };
        let is_there = |&index: &usize| self.begin(index).is_some();
        (0..self.functions).take_while(is_there).filter_map(symbol).collect()
    }
}

/// `runtime.text`, as the module's data says.
fn text_of_module(image: &Image, table: &Section, functions: &Table<'_>) -> Option<u64> {
    let (first, last) = (functions.begin(0)?, functions.begin(functions.functions)?);
    let agrees = |word: &dyn Fn(u64) -> Option<u64>| {
        let text = word(TEXT)?;
        let is_it = word(MIN_PC)? == text.checked_add(first)? && word(MAX_PC)? == text.checked_add(last)?;
        is_it.then_some(text)
    };
    let in_data = |section: &Section| {
        let data = image.read(section).ok()?;
        let words = data.as_chunks::<8>().0;
        let at = |index: u64| words.get(usize::try_from(index).ok()?).map(|word| u64::from_le_bytes(*word));
        let of_table = (0..words.len() as u64).filter(|&index| at(index) == Some(table.address));
        of_table.into_iter().find_map(|index| agrees(&|word| at(index.checked_add(word)?)))
    };
    let is_data = |section: &&Section| {
        section.kind == elf::SHT_PROGBITS
            && section.address != 0
            && !section.executable
            && section.name != table.name
    };
    image.sections.iter().filter(is_data).find_map(in_data).or_else(|| {
        let relocations = image.read(image.section(".rela.dyn")?).ok()?;
        let rows: &[Rela64<Endianness>] = pod::slice_from_all_bytes(&relocations).ok()?;
        let endian = image.form.endian;
        let mut written: Vec<(u64, u64)> = rows
            .iter()
            .filter(|row| row.r_sym(endian, false) == 0)
            .map(|row| (row.r_offset.get(endian), row.r_addend.get(endian).cast_unsigned()))
            .collect();
        written.sort_unstable();
        let at = |address: u64| {
            let index = written.binary_search_by_key(&address, |&(place, _)| place).ok()?;
            written.get(index).map(|&(_, value)| value)
        };
        let of_table = written.iter().filter(|&&(_, value)| value == table.address);
        of_table.into_iter().find_map(|&(place, _)| agrees(&|word| at(place.checked_add(8 * word)?)))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
