//! Functions of a Go program from `.gopclntab`, the table for Go's own tracebacks, which survives stripping.
//!
//! Covers Go 1.16 and newer (`pcHeader` and `_func` in runtime/symtab.go, debug/gosym/pclntab.go). Function offsets are relative to
//! `runtime.text`, which the table states up to Go 1.25, unless the program is position-independent. Otherwise it comes from the
//! runtime's `moduledata` (`module`). This module reads the header, the list of functions, and their names; `lines` reads lines and inlined
//! calls.
//!
//! Elsewhere: stack pointer offsets (`plumb_unwind::go`).

mod lines;
mod module;
mod values;

use object::Endianness;

use crate::elf::Image;
pub(crate) use crate::gopclntab::lines::GoLines;
use crate::gopclntab::module::Module;
use crate::headers::{Compression, Section};
use crate::summary::Missing;
use crate::table::{Bind, Symbol};

/// Largest number of functions, several times that of the largest programs.
const MAX_FUNCTIONS: usize = 8 << 20;
/// Size of the longest header.
const HEADER: u64 = 72;

/// Functions with their names.
#[derive(Debug)]
pub(crate) struct GoFunctions {
    pub symbols: Vec<Symbol>,
    /// Names, each NUL-terminated; symbols hold offsets into this.
    pub names: Vec<u8>,
}

/// The Go version that introduced the table's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Absolute addresses of eight bytes.
    Go116,
    /// Four-byte offsets from `runtime.text`.
    Go118,
    /// Entries of functions have their first line; those of inlined calls no longer have their location.
    Go120,
}

/// The table's header: the offsets of its parts in bytes from its start.
#[derive(Clone, Copy, Debug)]
struct Header {
    version: Version,
    /// Instruction sizes are multiples of this many bytes.
    quantum: u8,
    functions: usize,
    /// Address of `runtime.text`, if the table states it.
    text: Option<u64>,
    names: u64,
    /// File name offsets by compilation unit.
    units: u64,
    /// File names.
    files: u64,
    /// Value tables.
    values: u64,
    /// Function list: start addresses and entry offsets.
    list: u64,
}

/// Functions sorted by address, followed by the end of the last one.
#[derive(Clone, Copy)]
struct FunctionList<'a> {
    version: Version,
    count: usize,
    rows: &'a [u8],
}

/// Returns the table's section in an x86-64 or aarch64 file.
fn section(image: &Image) -> Option<&Section> {
    let names = [".gopclntab", ".data.rel.ro.gopclntab"];
    let section = names.iter().find_map(|name| image.section(name))?;
    let is_read = image.form.is_64 && image.form.endian == Endianness::Little;
    (is_read && section.compression == Compression::None).then_some(section)
}

/// Reads the functions of an x86-64 or aarch64 Go program; `None`: not a Go program, or an unknown version.
pub(crate) fn read(image: &Image) -> Result<Option<GoFunctions>, Missing> {
    let Some(section) = section(image) else { return Ok(None) };
    let bytes = image.read(section)?;
    let Some(header) = Header::read(&bytes) else { return Ok(None) };
    let (Some(list), Some(names)) = (behind(&bytes, header.list), behind(&bytes, header.names)) else {
        return Ok(None);
    };
    let functions = FunctionList { version: header.version, count: header.functions, rows: list };
    let base = match header.version {
        Version::Go116 => Some(0),
        _ => header.text.or_else(|| Some(Module::find(image, section, &functions)?.text)),
    };
    let base = base.ok_or_else(|| no_base(image))?;
    // The names end at the next part.
    let length = header.units.checked_sub(header.names).and_then(|length| usize::try_from(length).ok());
    let names = length.and_then(|length| names.get(..length)).unwrap_or(names);
    Ok(Some(GoFunctions { symbols: functions.symbols(base), names: names.to_vec() }))
}

fn no_base(image: &Image) -> Missing {
    image.malformed("no module data of Go says where the functions of .gopclntab are".into())
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (version, first) = match u32_at(bytes, 0)? {
            0xffff_fffa => (Version::Go116, 2),
            0xffff_fff0 => (Version::Go118, 3),
            0xffff_fff1 => (Version::Go120, 3),
            _ => return None,
        };
        if *bytes.get(7)? != 8 {
            return None;
        }
        let word = |index: usize| u64_at(bytes, 8 + 8 * index);
        Some(Self {
            version,
            quantum: *bytes.get(6).filter(|quantum| [1, 2, 4].contains(*quantum))?,
            functions: usize::try_from(word(0)?).ok().filter(|&count| count <= MAX_FUNCTIONS)?,
            text: word(2).filter(|&text| version != Version::Go116 && text != 0),
            names: word(first)?,
            units: word(first + 1)?,
            files: word(first + 2)?,
            values: word(first + 3)?,
            list: word(first + 4)?,
        })
    }
}

impl FunctionList<'_> {
    /// Returns the size of a row: a function's start and its entry offset.
    fn row(version: Version) -> usize {
        if version == Version::Go116 { 16 } else { 8 }
    }

    /// Returns the start of the function with this index in the table's units; for the index after the last one, its end.
    fn begin(&self, index: usize) -> Option<u64> {
        self.number(index, 0)
    }

    /// Returns the offset of its entry from the start of the list.
    fn entry(&self, index: usize) -> Option<u64> {
        self.number(index, 1)
    }

    fn number(&self, index: usize, which: usize) -> Option<u64> {
        let row = Self::row(self.version);
        let at = index.checked_mul(row)?.checked_add(which * row / 2)?;
        if self.version == Version::Go116 {
            u64_at(self.rows, at)
        } else {
            u32_at(self.rows, at).map(u64::from)
        }
    }

    /// Returns the index of the function that contains `address`, in the table's units.
    fn find(&self, address: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let index = low.checked_sub(1)?;
        (self.begin(index)?..self.begin(low)?).contains(&address).then_some(index)
    }

    /// Returns the offset of its name.
    fn name(&self, index: usize) -> Option<u32> {
        let entry = usize::try_from(self.entry(index)?).ok()?;
        u32_at(self.rows, entry.checked_add(Self::row(self.version) / 2)?)
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
        (0..self.count).take_while(is_there).filter_map(symbol).collect()
    }
}

fn behind(bytes: &[u8], at: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a Go 1.18 function list: rows of an offset and an entry, and the end of the last function.
    fn find(distances: &[u32], count: usize, address: u64) -> Option<usize> {
        let rows: Vec<u8> =
            distances.iter().flat_map(|distance| [*distance, 0]).flat_map(u32::to_le_bytes).collect();
        FunctionList { version: Version::Go118, count, rows: &rows }.find(address)
    }

    #[test]
    fn a_function_reaches_up_to_the_next() {
        let list = [0x10, 0x20, 0x40, 0x50];
        let found = [0xf, 0x10, 0x1f, 0x20, 0x4f, 0x50].map(|address| find(&list, 3, address));
        assert_eq!(found, [None, Some(0), Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn lists_that_are_cut_or_out_of_order_are_survived() {
        assert_eq!(find(&[], 0, 5), None);
        assert_eq!(find(&[0x10, 0x20], 1000, 0x18), None, "more functions are claimed than there are");
        for address in 0..0x60 {
            if let Some(index) = find(&[0x50, 0x10, 0x40, 0x20], 3, address) {
                assert!(index < 3);
            }
        }
    }

    #[test]
    fn headers_of_other_versions_are_none() {
        let mut header = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        header.resize(72, 0);
        assert!(Header::read(&header).is_some_and(|header| header.version == Version::Go120));
        let changed = |at: usize, to: u8| {
            let mut header = header.clone();
            header[at] = to;
            Header::read(&header).is_none()
        };
        // The magic number, the instruction and address sizes, and the number of functions.
        assert!(changed(0, 0xfb) && changed(6, 0) && changed(7, 4) && changed(12, 1));
        assert!((0..72).all(|length| Header::read(&header[..length]).is_none()));
    }
}
