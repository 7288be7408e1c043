//! The runtime's `moduledata`: where the code of a Go program begins, and what entries of its functions point into.
//!
//! It has no name in a stripped program. Its first word is the address of `.gopclntab`: in the data, or in the relocations that write
//! it there. What it says about the first and the last function has to agree with the table.
//!
//! Not here: whether what a word points to is what it should be; a newer version of Go may put other words before it.

use object::elf::{self, Rela64};
use object::{Endianness, pod};

use crate::elf::Image;
use crate::gopclntab::{FunctionList, Version};
use crate::headers::Section;

/// Words of `moduledata`: the addresses of the first function and behind the last, and `runtime.text`.
const MIN_PC: u64 = 20;
const MAX_PC: u64 = 21;
const TEXT: u64 = 22;
/// The word `gofunc` up to Go 1.19, which became another with two more before it.
const GOFUNC_1_18: u64 = 38;
const GOFUNC_1_20: u64 = 40;
/// Where it may come to be.
const GOFUNC_LATER: std::ops::RangeInclusive<u64> = 35..=46;
/// Sections that it is in, in this order: as of Go 1.26, before, and of a program that is loaded anywhere.
const LIKELY: [&str; 3] = [".go.module", ".noptrdata", ".data.rel.ro"];

/// What `moduledata` says.
pub(super) struct Module {
    /// `runtime.text`.
    pub text: u64,
    /// Words that may be `gofunc`, what offsets of inline trees count from; the likeliest first.
    pub gofunc: Vec<u64>,
}

impl Module {
    /// Finds it for the functions of `table`.
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

    /// Reads it by its words, if it is of these functions.
    fn read(functions: &FunctionList<'_>, word: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        let (first, last) = (functions.begin(0)?, functions.begin(functions.count)?);
        let text = word(TEXT)?;
        let is_it = word(MIN_PC)? == text.checked_add(first)? && word(MAX_PC)? == text.checked_add(last)?;
        let likely = if functions.version == Version::Go118 { GOFUNC_1_18 } else { GOFUNC_1_20 };
        let gofunc = std::iter::once(likely).chain(GOFUNC_LATER.filter(|&word| word != likely));
        is_it.then(|| Self { text, gofunc: gofunc.filter_map(word).collect() })
    }
}

/// Looks at each word of a section that is `table`, the address of `.gopclntab`.
fn in_data(image: &Image, section: &Section, table: u64, functions: &FunctionList<'_>) -> Option<Module> {
    let data = image.read(section).ok()?;
    let words = data.as_chunks::<8>().0;
    let at = |index: u64| words.get(usize::try_from(index).ok()?).map(|word| u64::from_le_bytes(*word));
    let of_table = (0..words.len() as u64).filter(|&index| at(index) == Some(table));
    of_table.into_iter().find_map(|index| Module::read(functions, |word| at(index.checked_add(word)?)))
}

/// Looks at each word that a relocation makes the address of `.gopclntab`.
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
