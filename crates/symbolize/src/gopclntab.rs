//! The functions of a Go program by the table that its own tracebacks use, `.gopclntab`: it is there after stripping too.
//!
//! Go 1.16 and newer (`pcHeader` and `_func` in runtime/symtab.go, debug/gosym/pclntab.go). Offsets of functions count from
//! `runtime.text`, which the table says itself up to Go 1.25, unless the program is position-independent. Otherwise it is in the
//! runtime's `moduledata` (`module`). Here are the header, the list of functions, and their names; `lines` has their lines and inlined
//! calls.
//!
//! Not here: the steps of the stack pointer (`plumb_unwind::go`).

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

/// No more functions than the largest programs have several times over.
const MAX_FUNCTIONS: usize = 8 << 20;
/// Bytes of the longest header.
const HEADER: u64 = 72;

/// The functions, and where their names are.
#[derive(Debug)]
pub(crate) struct GoFunctions {
    pub symbols: Vec<Symbol>,
    /// Names end with 0; symbols say where in this they begin.
    pub names: Vec<u8>,
}

/// Which version of Go first wrote the table as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// Addresses of eight bytes.
    Go116,
    /// Distances of four bytes from `runtime.text`.
    Go118,
    /// Entries of functions say in which line they begin; those of inlined calls no longer say where they are.
    Go120,
}

/// What the table begins with: where its parts are, in bytes from its start.
#[derive(Clone, Copy, Debug)]
struct Header {
    version: Version,
    /// Instructions take multiples of so many bytes.
    quantum: u8,
    functions: usize,
    /// Where `runtime.text` is, if the table says so.
    text: Option<u64>,
    names: u64,
    /// Of each unit that was compiled, where the names of its files are.
    units: u64,
    /// Names of files.
    files: u64,
    /// Tables of values.
    values: u64,
    /// The functions: where they begin, and where their entries are.
    list: u64,
}

/// The functions in the order of their addresses, behind them where the last one ends.
#[derive(Clone, Copy)]
struct FunctionList<'a> {
    version: Version,
    count: usize,
    rows: &'a [u8],
}

/// The table's section in a file of x86-64 or aarch64 that has one.
fn section(image: &Image) -> Option<&Section> {
    let names = [".gopclntab", ".data.rel.ro.gopclntab"];
    let section = names.iter().find_map(|name| image.section(name))?;
    let is_read = image.form.is_64 && image.form.endian == Endianness::Little;
    (is_read && section.compression == Compression::None).then_some(section)
}

/// The functions of a Go program of x86-64 or aarch64; `None`: it is none, or of another version.
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
    // Names end where the next part begins.
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
    /// Bytes of a row: where a function begins, and its entry.
    fn row(version: Version) -> usize {
        if version == Version::Go116 { 16 } else { 8 }
    }

    /// Where the function of that number begins, as the table counts; behind the last one that is where it ends.
    fn begin(&self, index: usize) -> Option<u64> {
        self.number(index, 0)
    }

    /// Where its entry is, from the start of the list.
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

    /// The number of the function that `address` is in, as the table counts.
    fn find(&self, address: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.begin(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let index = low.checked_sub(1)?;
        (self.begin(index)?..self.begin(low)?).contains(&address).then_some(index)
    }

    /// Where its name is.
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

    /// A list of functions as of Go 1.18: rows of a distance and an entry, and where the last one ends.
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
        // The magic number, the length of instructions and of addresses, and how many functions there are.
        assert!(changed(0, 0xfb) && changed(6, 0) && changed(7, 4) && changed(12, 1));
        assert!((0..72).all(|length| Header::read(&header[..length]).is_none()));
    }
}
