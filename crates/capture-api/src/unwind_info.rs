//! A file's code, lent to what walks stacks in the kernel.

use std::cell::RefCell;

use plumb_interpreters::Root;
use plumb_table_cache::TableLoader;
use plumb_unwind::Module;
use plumb_unwind::table::Table;

/// A file's code.
#[derive(Debug)]
pub struct UnwindInfoRef<'a> {
    /// Its unwind information.
    pub module: &'a Module<Vec<u8>>,
    /// Its build id, if it has one.
    pub build_id: Option<Box<[u8]>>,
    /// What of the file is loaded as code.
    pub segments: Vec<CodeSegment>,
    /// The interpreter that is in it.
    pub interpreter: Option<Root>,
    /// Where tables are kept; `None`: nowhere.
    pub shelf: Option<&'a RefCell<TableLoader>>,
}

impl<'a> UnwindInfoRef<'a> {
    /// A file with no tables but those that are made of it.
    pub fn new(module: &'a Module<Vec<u8>>, build_id: Option<Box<[u8]>>, segments: Vec<CodeSegment>) -> Self {
        Self { module, build_id, segments, interpreter: None, shelf: None }
    }

    /// The table of all its rows; `None` if it has none. It may have been kept by an earlier recording, and is kept for
    /// later ones.
    pub fn all_rows(&self) -> Option<Table> {
        match self.shelf {
            Some(shelf) => shelf.borrow_mut().all_rows(self.build_id.as_deref(), self.module),
            None => Table::of_all(self.module).ok(),
        }
    }
}

/// A stretch of a file that is code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// Stated address of its first byte.
    pub address: u64,
    /// Place of that byte in the file.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
}
