//! A file's unwind information, lent to the kernel unwinder.

use std::cell::RefCell;

use plumb_interpreters::Root;
use plumb_table_cache::TableLoader;
use plumb_unwind::Module;
use plumb_unwind::table::Table;

/// The unwind information of a file.
#[derive(Debug)]
pub struct UnwindInfoRef<'a> {
    /// The file's unwind sections.
    pub module: &'a Module<Vec<u8>>,
    /// GNU build id, if the file has one.
    pub build_id: Option<Box<[u8]>>,
    /// The executable segments of the file.
    pub segments: Vec<CodeSegment>,
    /// The interpreter contained in it.
    pub interpreter: Option<Root>,
    /// The cache of tables; `None`: no cache.
    pub shelf: Option<&'a RefCell<TableLoader>>,
}

impl<'a> UnwindInfoRef<'a> {
    /// Creates one without a table cache.
    pub fn new(module: &'a Module<Vec<u8>>, build_id: Option<Box<[u8]>>, segments: Vec<CodeSegment>) -> Self {
        Self { module, build_id, segments, interpreter: None, shelf: None }
    }

    /// Returns the table of all rows; `None` if there is none. It may come from the cache of an earlier recording, and is
    /// cached for later ones.
    pub fn all_rows(&self) -> Option<Table> {
        match self.shelf {
            Some(shelf) => shelf.borrow_mut().all_rows(self.build_id.as_deref(), self.module),
            None => Table::of_all(self.module).ok(),
        }
    }
}

/// An executable segment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSegment {
    /// Address of its first byte, as stated in the file.
    pub address: u64,
    /// Offset of that byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}
