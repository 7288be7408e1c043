//! The runtime's `moduledata`: the start of a Go program's code, and the base of offsets in its function entries.
//!
//! A stripped program has no symbol for it. Its first word is the address of `.gopclntab`: in the data, or in the relocations that write
//! it there. Its first and last function must agree with the table.
//!
//! Does not check the target of a word; a newer version of Go may insert words before it.

use object::elf::{self, Rela64};
use object::{Endianness, pod};

use crate::elf::Image;
use crate::gopclntab::{FunctionList, Version};
use crate::headers::Section;

/// Word indices in `moduledata`: the addresses of the first function and after the last, and `runtime.text`.
const MIN_PC: u64 = 20;
const MAX_PC: u64 = 21;
const TEXT: u64 = 22;
/// Index of the word `gofunc` up to Go 1.19; later two more words precede it.
const GOFUNC_1_18: u64 = 38;
const GOFUNC_1_20: u64 = 40;
/// Possible indices in later versions.
const GOFUNC_LATER: std::ops::RangeInclusive<u64> = 35..=46;
/// Sections searched, in this order: since Go 1.26, before, and in a position-independent program.
const LIKELY: [&str; 3] = [".go.module", ".noptrdata", ".data.rel.ro"];

/// The relevant words of `moduledata`.
pub(super) struct Module {
    /// `runtime.text`.
    pub text: u64,
    /// Candidates for `gofunc`, the base of offsets of inline trees; the most likely first.
    pub gofunc: Vec<u64>,
}

impl Module {
    /// Finds the `moduledata` for the functions of `table`.
    pub fn find(image: &Image, table: &Section, functions: &FunctionList<'_>) -> Option<Self> {
        let is_data = |section: &&Section| {
            section.kind == elf::SHT_PROGBITS
                && section.address != 0
                && !section.executable
                && section.name != table.name
        };
        let mut data: Vec<&Section> = image.sections.iter().filter(is_data).collect();
        data.sort_by_key(|section| {
            LIKELY.iter().position(|name| *name == section.name).unwrap_or(LIKELY.len())
        });
        let in_data = data.into_iter().find_map(|section| in_data(image, section, table.address, functions));
        in_data.or_else(|| in_relocations(image, table.address, functions))
    }

    /// Reads a candidate by its words, if it matches these functions.
    fn read(functions: &FunctionList<'_>, word: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        let (first, last) = (functions.begin(0)?, functions.begin(functions.count)?);
        let text = word(TEXT)?;
        let is_it = word(MIN_PC)? == text.checked_add(first)? && word(MAX_PC)? == text.checked_add(last)?;
        let likely = if functions.version == Version::Go118 { GOFUNC_1_18 } else { GOFUNC_1_20 };
        let gofunc = std::iter::once(likely).chain(GOFUNC_LATER.filter(|&word| word != likely));
        is_it.then(|| Self { text, gofunc: gofunc.filter_map(word).collect() })
    }
}

/// Tries each word of a section that equals `table`, the address of `.gopclntab`.
fn in_data(image: &Image, section: &Section, table: u64, functions: &FunctionList<'_>) -> Option<Module> {
    let data = image.read(section).ok()?;
    let words = data.as_chunks::<8>().0;
    let at = |index: u64| words.get(usize::try_from(index).ok()?).map(|word| u64::from_le_bytes(*word));
    let of_table = (0..words.len() as u64).filter(|&index| at(index) == Some(table));
    of_table.into_iter().find_map(|index| Module::read(functions, |word| at(index.checked_add(word)?)))
}

/// Tries each word that a relocation sets to the address of `.gopclntab`.
fn in_relocations(image: &Image, table: u64, functions: &FunctionList<'_>) -> Option<Module> {
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
    let of_table = written.iter().filter(|&&(_, value)| value == table);
    of_table
        .into_iter()
        .find_map(|&(place, _)| Module::read(functions, |word| at(place.checked_add(8 * word)?)))
}
