//! All names of functions that a file and its debug file have: symbol tables, `.gnu_debugdata`, PLT stubs.

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};

use crate::elf::Image;
use crate::job::Answer;
use crate::plt::{self, Plt};
use crate::summary::Missing;
use crate::symtab::{Named, Symtab};

/// The functions of a file, from wherever they were found.
#[derive(Debug, Default)]
pub(crate) struct FileSymbols<'i> {
    /// The tables, the best first.
    tables: Vec<Symtab<'i>>,
    plt: Plt,
}

impl<'i> FileSymbols<'i> {
    /// Reads the tables of `image`, and of `debug` or `mini` where `image` was stripped.
    pub fn read(
        image: &'i Image,
        debug: Option<&'i Image>,
        mini: Option<&'i Image>,
        addresses: &[u64],
        answer: &mut Answer,
    ) -> Self {
        let mut tables = Vec::new();
        let take = |found: Result<Option<Symtab<'i>>, Missing>, answer: &mut Answer| {
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
        Self { tables, plt: plt::read(image, addresses) }
    }

    /// The function that `address` belongs to.
    pub fn find(&self, address: u64) -> Option<Named> {
        self.tables.iter().find_map(|table| table.find(address)).or_else(|| self.plt.find(address))
    }
}
