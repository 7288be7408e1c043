//! All names of functions that a file and its debug file have: symbol tables, `.gnu_debugdata`, PLT stubs.

use std::rc::Rc;

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};

use crate::elf::Image;
use crate::headers::Section;
use crate::job::Answer;
use crate::plt::Plt;
use crate::strings::Strings;
use crate::summary::Missing;
use crate::symtab::{Named, Symtab};

/// Bytes of `_start` that are taken to be its own where no symbol says so: it is 34 to 47 long in glibc and musl.
const START: u64 = 48;

/// The functions of a file, from wherever they were found.
#[derive(Debug)]
pub(crate) struct FileSymbols {
    /// The tables, the best first.
    tables: Vec<Symtab>,
    plt: Plt,
    /// Where a process begins, 0 if nowhere.
    entry: u64,
}

impl FileSymbols {
    /// Reads the tables of `image`, and of `debug` or `mini` where `image` was stripped.
    pub fn read(
        image: &Rc<Image>,
        debug: Option<&Rc<Image>>,
        mini: Option<&Rc<Image>>,
        answer: &mut Answer,
    ) -> Self {
        let mut tables = Vec::new();
        let take = |found: Result<Option<Symtab>, Missing>, answer: &mut Answer| {
            found.unwrap_or_else(|missing| {
                answer.miss(missing);
                None
            })
        };
        let full = [Some(image), debug].into_iter().flatten().find_map(|image| {
            let table = take(Symtab::read(image, SHT_SYMTAB), answer)?;
            (table.len() > 0).then_some(table)
        });
        let is_stripped = full.is_none();
        tables.extend(full);
        if is_stripped {
            tables.extend(take(Symtab::read(image, SHT_DYNSYM), answer));
            if let Some(local) = mini {
                tables.extend(take(Symtab::read(local, SHT_SYMTAB), answer));
            } else {
                answer.miss(Missing::NoSymbols);
            }
        }
        answer.summary.functions = tables.iter().map(Symtab::len).sum();
        Self { tables, plt: Plt::new(image), entry: image.entry }
    }

    /// About how many bytes the tables of `image` take in memory, at the most.
    pub fn bytes(image: &Image) -> u64 {
        let tables = [SHT_SYMTAB, SHT_DYNSYM].iter().filter_map(|&kind| image.section_of(kind));
        let strings = |table: &Section| image.sections.get(table.link).map_or(0, Strings::bytes);
        // The rows as they are in the file, 24 bytes each, and what is made of them, 40 bytes.
        tables.map(|table| table.size.saturating_mul(3).saturating_add(strings(table))).sum()
    }

    /// The function that `address` belongs to.
    pub fn find(&mut self, address: u64) -> Option<Named> {
        self.in_tables(address).or_else(|| self.plt.find(address)).or_else(|| self.start(address))
    }

    /// The function whose address is in a slot of the global offset table.
    pub fn slot(&mut self, address: u64) -> Option<String> {
        self.plt.slot(address)
    }

    fn in_tables(&self, address: u64) -> Option<Named> {
        self.tables.iter().find_map(|table| table.find(address))
    }

    /// The code that a process begins with, which every stack of its first thread ends in. Stripping takes its name
    /// away, but the file's header still says where it is.
    fn start(&self, address: u64) -> Option<Named> {
        let is_inside = self.entry != 0 && (self.entry..self.entry.saturating_add(START)).contains(&address);
        // Where its symbol is there, that says where it ends.
        (is_inside && self.in_tables(self.entry).is_none()).then(|| Named {
            linkage_name: "_start".to_owned(),
            start: self.entry,
            end: self.entry.saturating_add(START),
        })
    }
}
