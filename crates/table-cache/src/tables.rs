//! Tables of the rules for callers (`plumb_unwind::table`) of ELF files: made with the file's code, kept on disk by build
//! id, and described.
//!
//! Recordings use those of files in which many addresses are looked up, and have them made ([`TableLoader`](crate::TableLoader)). Most look up few
//! in each file, which takes less than a table of one large library.

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

/// Version of what is kept: of the table's layout, of how rows are chosen and of what is made of code.
const VERSION: u32 = 6;
/// All tables together take no more on disk. That for callers of a library of 120 MB has 0.3 MB, that of all its rows 4.8.
const LIMIT: u64 = 128 << 20;
/// What the key of a table of all rows has after the build id.
const ALL_ROWS: &[u8] = b"/all";
/// What the key of entries made of code has after the build id.
const ENTRIES: &[u8] = b"/code";
/// How much code is read at once.
const PIECE: usize = 256 << 10;

/// The tables of files seen before.
#[derive(Debug)]
pub struct TableCache(DiskCache);

impl TableCache {
    /// Those of this user.
    pub fn open() -> Self {
        Self(DiskCache::open("tables", VERSION, LIMIT))
    }

    /// Those below the folder `cache`.
    pub fn open_in(cache: &Path) -> Self {
        Self(DiskCache::open_in(cache, "tables", VERSION, LIMIT))
    }

    /// The table for callers of the file with this build id, if it was kept.
    pub fn get(&self, build_id: &[u8]) -> Option<Table> {
        self.read(build_id, build_id).filter(|table| table.content() != Content::All)
    }

    /// Keeps the table for callers of the file with this build id.
    pub fn put(&self, build_id: &[u8], table: Table) {
        self.0.put(build_id, &table.with_build_id(build_id).to_bytes());
    }

    /// The table of all rows of the file with this build id, if it was kept.
    pub fn all_rows(&self, build_id: &[u8]) -> Option<Table> {
        let table = self.read(&[build_id, ALL_ROWS].concat(), build_id);
        table.filter(|table| table.content() == Content::All)
    }

    /// Keeps the table of all rows of the file with this build id.
    pub fn put_all_rows(&self, build_id: &[u8], table: Table) {
        self.0.put(&[build_id, ALL_ROWS].concat(), &table.with_build_id(build_id).to_bytes());
    }

    /// The entries made of the code of the file with this build id, if they were kept.
    pub(crate) fn entries(&self, build_id: &[u8]) -> Option<Vec<u8>> {
        self.0.get(&[build_id, ENTRIES].concat())
    }

    /// Keeps the entries made of the code of the file with this build id.
    pub(crate) fn put_entries(&self, build_id: &[u8], entries: &[u8]) {
        self.0.put(&[build_id, ENTRIES].concat(), entries);
    }

    fn read(&self, key: &[u8], build_id: &[u8]) -> Option<Table> {
        let table = Table::from_bytes(&self.0.get(key)?).ok()?;
        table.is_of(build_id).then_some(table)
    }
}

/// Why there is no table of a file.
#[derive(Debug)]
pub enum NoTable {
    /// The file can't be opened.
    File(std::io::Error),
    /// It is no ELF file that can be read.
    Elf(ElfError),
    /// It has no unwind information, or none that fits.
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

/// An ELF file that tables are made of.
#[derive(Debug)]
pub struct Source {
    module: Module<Vec<u8>>,
    /// `None`: one that is not known.
    isa: Option<Isa>,
    elf: Elf,
    file: File,
}

impl Source {
    /// Opens a file and reads what it has of unwind information.
    pub fn open(path: &Path) -> Result<Self, NoTable> {
        let file = File::open(path).map_err(NoTable::File)?;
        if file.metadata().map_err(NoTable::File)?.is_dir() {
            return Err(NoTable::File(std::io::ErrorKind::IsADirectory.into()));
        }
        let elf = Elf::read(&file).map_err(NoTable::Elf)?;
        Ok(Self::of(elf, file))
    }

    /// The file with these headers.
    pub(crate) fn of(elf: Elf, file: File) -> Self {
        let isa = isa(&elf);
        Self { module: module_of(elf.unwind_sections(&file), isa.unwrap_or_default(), None), isa, elf, file }
    }

    /// Its unwind information.
    #[cfg(test)]
    pub(crate) fn module(&self) -> &Module<Vec<u8>> {
        &self.module
    }

    /// What the file is found by in [`TableCache`], if it has such a thing.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id.as_deref()
    }

    /// The table from call-frame information alone.
    pub fn by_length(&self) -> Result<Table, NoTable> {
        self.check()?;
        Table::by_length(&self.module).map_err(NoTable::Table)
    }

    /// The smaller table, for which all code is read.
    pub fn of_calls(&self) -> Result<Table, NoTable> {
        self.check()?;
        Table::of_calls(&self.module, &mut Code::new(&self.elf, &self.file)).map_err(NoTable::Table)
    }

    fn check(&self) -> Result<(), NoTable> {
        self.isa.map(|_| ()).ok_or(NoTable::Table(TableError::OtherArchitecture))
    }

    /// What the file's tables are like.
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
        // An entry for each function, which is eight bytes.
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

    /// Rows that no rule can say, by why.
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

/// The architecture of a file, if it is one that is known.
fn isa(elf: &Elf) -> Option<Isa> {
    /// `EM_ARM`, `EM_X86_64` and `EM_AARCH64`.
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

/// Why no rule can say what a row says.
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

/// What the tables of a file are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Bytes of `.eh_frame`, or of `.debug_frame` or `.ARM.exidx` where that is all.
    pub frame_bytes: usize,
    /// Functions that have rules; of `.ARM.exidx` entries, of which one may serve several functions.
    pub functions: usize,
    /// All rows, equal neighbours as one.
    pub rows: usize,
    /// Different rules in these.
    pub rules: usize,
    /// Rows that no rule can say, by why.
    pub odd: BTreeMap<&'static str, usize>,
    /// The table from call-frame information alone.
    pub by_length: Size,
    /// The table of rows in which a call ends.
    pub of_calls: Size,
}

/// How large a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Its rows, also those that say that there are no rules.
    pub rows: usize,
    /// Its bytes on disk and in memory.
    pub bytes: usize,
    /// How long making it took.
    pub time: Duration,
}

impl Size {
    fn of(table: &Table, time: Duration) -> Self {
        Self { rows: table.rows(), bytes: table.size(), time }
    }
}

/// The code of a file, read piece by piece.
struct Code<'a> {
    file: &'a File,
    /// Stated addresses and where they are in the file.
    segments: Vec<(Range<u64>, u64)>,
    piece: Vec<u8>,
    /// Where the piece begins.
    at: u64,
}

impl<'a> Code<'a> {
    fn new(elf: &Elf, file: &'a File) -> Self {
        let segment = |(address, offset, size): (u64, plumb_process::FileOffset, u64)| {
            (address..address.saturating_add(size), offset.0)
        };
        Self { file, segments: elf.code().map(segment).collect(), piece: Vec::new(), at: 0 }
    }

    /// Reads a piece that begins at `at`; what can't be read is left out.
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
        // A row of usual length is found in one piece.
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
