//! Tables of unwind rules for callers (`plumb_unwind::table`) of ELF files: built with the file's code, cached on
//! disk by build id, and described.
//!
//! Recordings use tables for files in which they look up many addresses, and request missing ones
//! ([`TableLoader`](crate::TableLoader)). Most recordings look up few addresses per file, which takes less time than
//! the table of one large library.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use plumb_process::{DiskCache, Elf, ElfError, read_most};
use plumb_unwind::rule::{Kind, Rule};
use plumb_unwind::table::{Content, Table, TableError, Text};
use plumb_unwind::{CfaRule, Isa, Module, RegisterRule, Row, Section, Svma, aarch64, arm, x86_64};

use crate::module::module_of;

/// Version of the cached data. Covers the table's layout, the selection of rows, and the rules derived from code.
const VERSION: u32 = 10;
/// Maximum size of the cache on disk, in bytes. For a library of 120 MB, the table for callers has 0.3 MB and the
/// table of all rows 4.8 MB.
const LIMIT: u64 = 128 << 20;
/// Suffix after the build id in the key of a table of all rows.
const ALL_ROWS: &[u8] = b"/all";
/// Suffix after the build id in the key of entries derived from code.
const ENTRIES: &[u8] = b"/code";
/// Number of bytes of code read at once.
const PIECE: usize = 256 << 10;

/// Disk cache of tables.
#[derive(Debug)]
pub struct TableCache(DiskCache);

impl TableCache {
    /// Opens the user's cache.
    pub fn open() -> Self {
        Self(DiskCache::open("tables", VERSION, LIMIT))
    }

    /// Opens a cache in the directory `cache`.
    pub fn open_in(cache: &Path) -> Self {
        Self(DiskCache::open_in(cache, "tables", VERSION, LIMIT))
    }

    /// Returns the cached table for callers of the file with this build id.
    pub fn get(&self, build_id: &[u8]) -> Option<Table> {
        self.read(build_id, build_id).filter(|table| table.content() != Content::All)
    }

    /// Caches the table for callers of the file with this build id.
    pub fn put(&self, build_id: &[u8], table: Table) {
        self.0.put(build_id, &table.with_build_id(build_id).to_bytes());
    }

    /// Returns the cached table of all rows of the file with this build id.
    pub fn all_rows(&self, build_id: &[u8]) -> Option<Table> {
        let table = self.read(&[build_id, ALL_ROWS].concat(), build_id);
        table.filter(|table| table.content() == Content::All)
    }

    /// Caches the table of all rows of the file with this build id.
    pub fn put_all_rows(&self, build_id: &[u8], table: Table) {
        self.0.put(&[build_id, ALL_ROWS].concat(), &table.with_build_id(build_id).to_bytes());
    }

    /// Returns the cached entries derived from the code of the file with this build id.
    pub(crate) fn entries(&self, build_id: &[u8]) -> Option<Vec<u8>> {
        self.0.get(&[build_id, ENTRIES].concat())
    }

    /// Caches the entries derived from the code of the file with this build id.
    pub(crate) fn put_entries(&self, build_id: &[u8], entries: &[u8]) {
        self.0.put(&[build_id, ENTRIES].concat(), entries);
    }

    fn read(&self, key: &[u8], build_id: &[u8]) -> Option<Table> {
        let table = Table::from_bytes(&self.0.get(key)?).ok()?;
        table.is_of(build_id).then_some(table)
    }
}

/// Reason why a file has no table.
#[derive(Debug)]
pub enum NoTable {
    /// The file cannot be opened.
    File(std::io::Error),
    /// The file is not a readable ELF file.
    Elf(ElfError),
    /// The file has no unwind information, or it is unsuitable.
    Table(TableError),
}

impl fmt::Display for NoTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTable::File(error) => error.fmt(f),
            NoTable::Elf(error) => error.fmt(f),
            NoTable::Table(TableError::NoFrames) => f.write_str(
                "no unwind information (.eh_frame, .debug_frame): stacks through it can only be followed by \
                 frame pointers",
            ),
            NoTable::Table(error) => write!(f, "no table can be made: {error}"),
        }
    }
}

impl std::error::Error for NoTable {}

/// An ELF file to build tables from.
#[derive(Debug)]
pub struct Source {
    module: Module<Vec<u8>>,
    /// `None`: unknown architecture.
    isa: Option<Isa>,
    elf: Elf,
    file: File,
}

impl Source {
    /// Opens a file and reads its unwind information.
    pub fn open(path: &Path) -> Result<Self, NoTable> {
        let file = File::open(path).map_err(NoTable::File)?;
        if file.metadata().map_err(NoTable::File)?.is_dir() {
            return Err(NoTable::File(std::io::ErrorKind::IsADirectory.into()));
        }
        let elf = Elf::read(&file).map_err(NoTable::Elf)?;
        Ok(Self::of(elf, file))
    }

    /// Creates a source from a file whose headers are already read.
    pub(crate) fn of(elf: Elf, file: File) -> Self {
        let isa = isa(&elf);
        Self { module: module_of(elf.unwind_sections(&file), isa.unwrap_or_default(), None), isa, elf, file }
    }

    /// Returns the unwind information.
    #[cfg(test)]
    pub(crate) fn module(&self) -> &Module<Vec<u8>> {
        &self.module
    }

    /// Returns the build id, the key in [`TableCache`], if the file has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id.as_deref()
    }

    /// Builds the table from call-frame information alone.
    pub fn by_length(&self) -> Result<Table, NoTable> {
        self.check()?;
        Table::by_length(&self.module).map_err(NoTable::Table)
    }

    /// Builds the smaller table, for which all code is read.
    pub fn of_calls(&self) -> Result<Table, NoTable> {
        self.check()?;
        Table::of_calls(&self.module, &mut Code::new(&self.elf, &self.file)).map_err(NoTable::Table)
    }

    fn check(&self) -> Result<(), NoTable> {
        self.isa.map(|_| ()).ok_or(NoTable::Table(TableError::OtherArchitecture))
    }

    /// Describes the file's tables.
    pub fn describe(&self) -> Result<Description, NoTable> {
        let timed = |table: &dyn Fn() -> Result<Table, NoTable>| {
            let start = Instant::now();
            Ok((table()?, start.elapsed()))
        };
        let (by_length, by_length_time) = timed(&|| self.by_length())?;
        let (of_calls, of_calls_time) = timed(&|| self.of_calls())?;
        let all = Table::of_all(&self.module).map_err(NoTable::Table)?;
        let gap = Rule::only(Kind::MissingHere);
        let sections = self.module.sections();
        let bytes =
            |section: &Option<Section<Vec<u8>>>| section.as_ref().map_or(0, |section| section.bytes.len());
        let functions = self.module.function_count();
        // The index has one entry of eight bytes per function.
        let is_exidx = functions == 0 && bytes(&sections.exidx) > 0;
        let frames =
            [&sections.eh_frame, &sections.debug_frame].into_iter().find(|section| section.is_some());
        Ok(Description {
            frame_bytes: if is_exidx { bytes(&sections.exidx) } else { frames.map_or(0, bytes) },
            functions: if is_exidx { bytes(&sections.exidx) / 8 } else { functions },
            rows: all.iter().filter(|&(_, rule)| rule != gap).count(),
            rules: all.rules().len(),
            odd: self.odd(&all),
            by_length: Size::of(&by_length, by_length_time),
            of_calls: Size::of(&of_calls, of_calls_time),
        })
    }

    /// Counts the rows that no compact rule fits, by reason.
    fn odd(&self, all: &Table) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for (address, _) in all.iter().filter(|&(_, rule)| rule == Rule::only(Kind::Odd)) {
            let kind = match self.module.row(address) {
                Ok(Some(row)) => reason(&row, self.isa.unwrap_or_default()),
                Ok(None) => continue,
                Err(_) => "damaged",
            };
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }
}

/// Returns the architecture of a file, if it is supported.
fn isa(elf: &Elf) -> Option<Isa> {
    /// `EM_ARM`; below, `EM_X86_64` and `EM_AARCH64`.
    const ARM: u16 = 40;
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;
    match (elf.machine, elf.is_64) {
        _ if !elf.is_little_endian => None,
        (X86_64, true) => Some(Isa::X86_64),
        (AARCH64, true) => Some(Isa::Aarch64),
        (ARM, false) => Some(Isa::Arm),
        _ => None,
    }
}

/// Returns the reason why no compact rule fits a row.
fn reason(row: &Row, isa: Isa) -> &'static str {
    let (sp, fp) = match isa {
        Isa::X86_64 => (x86_64::SP, x86_64::FP),
        Isa::Aarch64 => (aarch64::SP, aarch64::FP),
        Isa::Arm => (arm::SP, arm::FP),
    };
    let is_expression = |rule| matches!(rule, RegisterRule::Expression(_) | RegisterRule::ValExpression(_));
    match row.cfa {
        _ if row.is_signal => "signal frame",
        CfaRule::Expression(_) => "expression for the CFA",
        CfaRule::Register { register, .. } if ![sp, fp].contains(&register) => "CFA on another register",
        _ if is_expression(row.register(fp)) => "expression for the frame pointer",
        _ => "other",
    }
}

/// Description of a file's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Size in bytes of `.eh_frame`, or else of `.debug_frame` or `.ARM.exidx`.
    pub frame_bytes: usize,
    /// Number of functions with rules. For `.ARM.exidx`, the number of entries, which may cover several functions
    /// each.
    pub functions: usize,
    /// Number of all rows, with equal neighbors merged.
    pub rows: usize,
    /// Number of distinct rules.
    pub rules: usize,
    /// Numbers of rows that no compact rule fits, by reason.
    pub odd: BTreeMap<&'static str, usize>,
    /// Table built from call-frame information alone.
    pub by_length: Size,
    /// Table of the rows in which a call ends.
    pub of_calls: Size,
}

/// Size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of rows, including those for code without rules.
    pub rows: usize,
    /// Number of bytes on disk, which is about that in memory.
    pub bytes: usize,
    /// Time it took to build.
    pub time: Duration,
}

impl Size {
    fn of(table: &Table, time: Duration) -> Self {
        Self { rows: table.rows(), bytes: table.size(), time }
    }
}

/// The code of a file, read in pieces.
struct Code<'a> {
    file: &'a File,
    /// Stated address range and file offset of each segment.
    segments: Vec<(Range<u64>, u64)>,
    piece: Vec<u8>,
    /// Address of the piece.
    at: u64,
}

impl<'a> Code<'a> {
    fn new(elf: &Elf, file: &'a File) -> Self {
        let segment = |(address, offset, size): (u64, plumb_process::FileOffset, u64)| {
            (address..address.saturating_add(size), offset.0)
        };
        Self { file, segments: elf.code().map(segment).collect(), piece: Vec::new(), at: 0 }
    }

    /// Reads a piece that begins at `at`, as far as it is readable.
    fn fill(&mut self, at: u64) {
        (self.at, self.piece) = (at, std::mem::take(&mut self.piece));
        self.piece.clear();
        let Some((range, offset)) = self.segments.iter().find(|(range, _)| range.contains(&at)) else {
            return;
        };
        let size = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(PIECE);
        self.piece.resize(size, 0);
        let from = offset.saturating_add(at - range.start);
        let read = read_most(self.file, from, &mut self.piece);
        self.piece.truncate(read);
    }
}

impl Text for Code<'_> {
    fn bytes(&mut self, at: Svma) -> &[u8] {
        let offset = |code: &Self| usize::try_from(at.0.checked_sub(code.at)?).ok();
        // The piece has room for a row of usual length.
        let is_there = offset(self).is_some_and(|offset| offset + PIECE / 16 <= self.piece.len());
        if !is_there {
            self.fill(at.0);
        }
        offset(self).and_then(|offset| self.piece.get(offset..)).unwrap_or_default()
    }

    fn span(&self) -> Range<Svma> {
        let first = self.segments.iter().map(|(range, _)| range.start).min().unwrap_or_default();
        Svma(first)..Svma(self.segments.iter().map(|(range, _)| range.end).max().unwrap_or_default())
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
