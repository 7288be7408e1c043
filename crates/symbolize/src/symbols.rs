//! All names of functions that a file and its debug file have: symbol tables, `.gnu_debugdata`, PLT stubs.

use object::elf::{SHT_DYNSYM, SHT_SYMTAB};

use crate::elf::Image;
use crate::job::Answer;
use crate::plt::Plt;
use crate::summary::Missing;
use crate::symtab::{Named, Symtab};
use crate::{mini, plt};

/// The functions of a file, from wherever they were found.
#[derive(Debug, Default)]
pub(crate) struct FileSymbols {
    /// The tables, the best first.
    tables: Vec<Symtab>,
    plt: Plt,
}

impl FileSymbols {
    /// Reads the tables of `image`, and of `debug` where `image` was stripped.
    pub fn read(image: &Image, debug: Option<&Image>, addresses: &[u64], answer: &mut Answer) -> Self {
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
            let local = mini::read(image).unwrap_or_else(|missing| {
                answer.miss(missing);
                None
            });
            if let Some(local) = &local {
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
