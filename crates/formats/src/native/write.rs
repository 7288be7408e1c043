//! Writes a recording: `meta.json`, then one table per table of the model.

use std::fmt;
use std::io::{Seek, Write};
use std::ops::Range;

use parquet::errors::ParquetError;
use plumb_profile::{DsoKind, FrameId, Id, Mapping, Meta, Profile, StackId};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::column::Packing::{Delta, Dictionary, Plain};
use super::lives;
use super::meta::MetaFile;
use super::names;
use super::registers;
use super::table::TableWriter;

/// The reason why a recording could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output rejected an entry of the archive: most often the disk is full.
    Output {
        /// The entry, such as `samples.parquet`; empty for the archive's directory.
        entry: &'static str,
        /// The output's error.
        error: std::io::Error,
    },
    /// A table could not be encoded.
    Encode {
        /// The entry, such as `samples.parquet`.
        entry: &'static str,
        /// The encoder's error.
        message: String,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Output { entry: "", error } => write!(f, "writing the archive's directory: {error}"),
            WriteError::Output { entry, error } => write!(f, "writing {entry}: {error}"),
            WriteError::Encode { entry, message } => write!(f, "encoding {entry}: {message}"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Output { error, .. } => Some(error),
            WriteError::Encode { .. } => None,
        }
    }
}

/// Writes `profile` as a recording. `out` is a valid recording only after this has returned.
pub fn write<W: Write + Seek>(profile: &Profile, out: W) -> Result<(), WriteError> {
    let mut archive = ZipWriter::new(out);
    add_meta(&mut archive, &profile.meta, super::version::VERSION)?;
    for (entry, build) in TABLES {
        add_table(&mut archive, entry, build(profile, &Rows::default()))?;
    }
    registers::add(profile, &mut archive)?;
    finish(archive).map(drop)
}

/// Adds `meta.json`.
pub(super) fn add_meta<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    meta: &Meta,
    version: (u32, u32),
) -> Result<(), WriteError> {
    let entry = "meta.json";
    let mut meta = serde_json::to_vec_pretty(&MetaFile::new(meta, version))
        .map_err(|error| WriteError::Encode { entry, message: error.to_string() })?;
    meta.push(b'\n');
    add(archive, entry, &meta)
}

/// Adds a table.
pub(super) fn add_table<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    entry: &'static str,
    table: TableWriter,
) -> Result<(), WriteError> {
    let encode = |error: ParquetError| WriteError::Encode { entry, message: error.to_string() };
    add(archive, entry, &table.finish().map_err(encode)?)
}

/// Finishes the archive.
pub(super) fn finish<W: Write + Seek>(archive: ZipWriter<W>) -> Result<W, WriteError> {
    let mut out = archive.finish().map_err(|error| WriteError::Output { entry: "", error: error.into() })?;
    out.flush().map_err(|error| WriteError::Output { entry: "", error })?;
    Ok(out)
}

fn add<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    entry: &'static str,
    bytes: &[u8],
) -> Result<(), WriteError> {
    begin_entry(archive, entry, bytes.len() as u64 >= u32::MAX.into())?;
    archive.write_all(bytes).map_err(|error| WriteError::Output { entry, error })
}

/// Begins an entry; `is_large`: it may have 4 GiB or more, which takes the ZIP64 header of 20 bytes.
pub(super) fn begin_entry<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    entry: &'static str,
    is_large: bool,
) -> Result<(), WriteError> {
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(is_large);
    archive.start_file(entry, options).map_err(|error| WriteError::Output { entry, error: error.into() })
}

/// Number of rows of each table to skip, because they are written elsewhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub strings: usize,
    pub events: usize,
    pub dsos: usize,
    pub processes: usize,
    pub threads: usize,
    pub mappings: usize,
    pub frames: usize,
    pub functions: usize,
    /// Counted as by [`Symbols::mark`](plumb_profile::Symbols::mark).
    pub lines: usize,
    pub stacks: usize,
    pub samples: usize,
}

impl Rows {
    /// Returns the number of all rows of a profile.
    pub(super) fn of(profile: &Profile) -> Self {
        Self {
            strings: profile.strings.len(),
            events: profile.events.len(),
            dsos: profile.dsos.len(),
            processes: profile.processes.len(),
            threads: profile.threads.len(),
            mappings: profile.mappings.len(),
            frames: profile.frames.len(),
            functions: profile.symbols.functions.len(),
            lines: profile.symbols.mark(),
            stacks: profile.stacks.len(),
            samples: profile.samples.len(),
        }
    }
}

/// Builds a table from the rows after those skipped.
pub(super) type Build = fn(&Profile, &Rows) -> TableWriter;

/// The entries in writing order.
pub(super) const TABLES: [(&str, Build); 12] = [
    (STRINGS, strings),
    ("events.parquet", events),
    ("dsos.parquet", dsos),
    (PROCESSES, processes),
    (THREADS, threads),
    (LIVES, |profile, _| lives::table(profile)),
    (MAPPINGS, |profile, done| mapping_table(new(&profile.mappings, done.mappings))),
    (FRAMES, frames),
    (FUNCTIONS, functions),
    (LINES, lines),
    (STACKS, stacks),
    (SAMPLES, samples),
];
const STRINGS: &str = "strings.parquet";
const PROCESSES: &str = "processes.parquet";
const THREADS: &str = "threads.parquet";
const FRAMES: &str = "frames.parquet";
const FUNCTIONS: &str = "functions.parquet";
const LINES: &str = "lines.parquet";
pub(super) const MAPPINGS: &str = "mappings.parquet";
pub(super) const LIVES: &str = "lives.parquet";
pub(super) const STACKS: &str = "stacks.parquet";
pub(super) const SAMPLES: &str = "samples.parquet";

/// Converts an id to its column value.
pub(super) fn row(id: impl Id) -> u32 {
    // Ids are 32 bits wide.
    id.index() as u32
}

/// Builds a table from a range of rows.
pub(super) type BuildGroup = fn(&Profile, Range<usize>) -> TableWriter;

/// Returns the number of rows, and the builder, of tables that grow for as long as a recording continues: built at
/// once they would take more memory than their source. Rows of lines are counted as frames.
pub(super) fn in_groups(entry: &str, profile: &Profile) -> Option<(usize, BuildGroup)> {
    Some(match entry {
        STRINGS => (profile.strings.len(), strings_in),
        PROCESSES => (profile.processes.len(), processes_in),
        THREADS => (profile.threads.len(), threads_in),
        FRAMES => (profile.frames.len(), frames_in),
        FUNCTIONS => (profile.symbols.functions.len(), functions_in),
        LINES => (profile.frames.len(), lines_in),
        _ => return None,
    })
}

fn strings(profile: &Profile, done: &Rows) -> TableWriter {
    strings_in(profile, done.strings..profile.strings.len())
}

fn strings_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    TableWriter::default().texts("text", Plain, profile.strings.iter().skip(rows.start).take(rows.len()))
}

fn events(profile: &Profile, done: &Rows) -> TableWriter {
    let events = new(profile.events.rows(), done.events);
    TableWriter::default().u32s("name", Plain, events.iter().map(|event| row(event.name))).u32s(
        "unit",
        Plain,
        events.iter().map(|event| row(event.unit)),
    )
}

fn dsos(profile: &Profile, done: &Rows) -> TableWriter {
    let dsos = new(profile.dsos.rows(), done.dsos);
    let pid = |kind| match kind {
        DsoKind::Anonymous { pid } => Some(pid),
        DsoKind::File | DsoKind::Script | DsoKind::Vdso | DsoKind::Kernel | DsoKind::KernelModule => None,
    };
    TableWriter::default()
        .u32s("path", Delta, dsos.iter().map(|dso| row(dso.path)))
        .optional_bytes("build_id", dsos.iter().map(|dso| dso.build_id.as_ref().map(|id| id.bytes())))
        .texts("kind", Dictionary, dsos.iter().map(|dso| names::of_dso_kind(dso.kind)))
        .optional_u32s("pid", Plain, dsos.iter().map(|dso| pid(dso.kind)))
        .texts("addresses", Dictionary, dsos.iter().map(|dso| names::of_address_space(dso.addresses)))
        .bools("is_script", dsos.iter().map(|dso| dso.kind == DsoKind::Script))
}

fn processes(profile: &Profile, done: &Rows) -> TableWriter {
    processes_in(profile, done.processes..profile.processes.len())
}

fn processes_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    let processes = profile.processes.rows().get(rows).unwrap_or_default();
    TableWriter::default()
        .u32s("pid", Delta, processes.iter().map(|process| process.pid))
        .u32s("ppid", Delta, processes.iter().map(|process| process.ppid))
        .u32s("exe", Delta, processes.iter().map(|process| row(process.exe)))
}

fn threads(profile: &Profile, done: &Rows) -> TableWriter {
    threads_in(profile, done.threads..profile.threads.len())
}

fn threads_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    let threads = profile.threads.rows().get(rows).unwrap_or_default();
    TableWriter::default()
        .u32s("process", Delta, threads.iter().map(|thread| row(thread.process)))
        .u32s("tid", Delta, threads.iter().map(|thread| thread.tid))
        .u32s("comm", Delta, threads.iter().map(|thread| row(thread.comm)))
}

/// Builds the table of these mappings.
pub(super) fn mapping_table(mappings: &[Mapping]) -> TableWriter {
    TableWriter::default()
        .u32s("process", Delta, mappings.iter().map(|mapping| row(mapping.process)))
        .u32s("dso", Plain, mappings.iter().map(|mapping| row(mapping.dso)))
        .u64s("start", Plain, mappings.iter().map(|mapping| mapping.start))
        .u64s("end", Plain, mappings.iter().map(|mapping| mapping.end))
        .u64s("bias", Plain, mappings.iter().map(|mapping| mapping.bias))
}

fn frames(profile: &Profile, done: &Rows) -> TableWriter {
    frames_in(profile, done.frames..profile.frames.len())
}

fn frames_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    let frames = profile.frames.rows().get(rows).unwrap_or_default();
    TableWriter::default()
        .texts("kind", Dictionary, frames.iter().map(|frame| names::of_frame_kind(frame.kind)))
        .optional_texts("cut", frames.iter().map(|frame| frame.cut().map(|cut| cut.name())))
        .optional_u32s("dso", Plain, frames.iter().map(|frame| frame.dso.map(row)))
        .u64s("address", Plain, frames.iter().map(|frame| frame.address.0))
        .bools("is_return", frames.iter().map(|frame| frame.is_return))
        .texts("found", Dictionary, frames.iter().map(|frame| names::of_found(frame.found)))
}

fn functions(profile: &Profile, done: &Rows) -> TableWriter {
    functions_in(profile, done.functions..profile.symbols.functions.len())
}

fn functions_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    let functions = profile.symbols.functions.rows().get(rows).unwrap_or_default();
    TableWriter::default()
        .u32s("name", Plain, functions.iter().map(|function| row(function.name)))
        .u32s("linkage_name", Plain, functions.iter().map(|function| row(function.linkage_name)))
        .optional_u32s("dso", Plain, functions.iter().map(|function| function.dso.map(row)))
        .optional_u64s("start", Plain, functions.iter().map(|function| function.start.map(|start| start.0)))
        .u32s("source_file", Plain, functions.iter().map(|function| row(function.source_file)))
        .u32s("start_line", Plain, functions.iter().map(|function| function.start_line))
}

fn lines(profile: &Profile, done: &Rows) -> TableWriter {
    lines_of(profile, || profile.symbols.set_since(done.lines))
}

fn lines_in(profile: &Profile, rows: Range<usize>) -> TableWriter {
    lines_of(profile, || rows.clone().map(FrameId::from_index))
}

/// Builds the lines of these frames, which are sorted.
fn lines_of<I: Iterator<Item = FrameId>>(profile: &Profile, frames: impl Fn() -> I) -> TableWriter {
    let frames = || frames().map(|frame| (frame, profile.symbols.recorded(frame)));
    let lines = || frames().flat_map(|(_, lines)| lines);
    TableWriter::default()
        .u32s(
            "frame",
            Delta,
            frames().flat_map(|(frame, lines)| std::iter::repeat_n(row(frame), lines.len())),
        )
        .u32s("function", Plain, lines().map(|line| row(line.function)))
        .u32s("file", Plain, lines().map(|line| row(line.file)))
        .u32s("line", Plain, lines().map(|line| line.line))
        .bools("inlined", lines().map(|line| line.inlined))
}

fn stacks(profile: &Profile, done: &Rows) -> TableWriter {
    stack_table(stack_rows(profile, done.stacks))
}

/// Returns callers and frames of the stacks after the first `done`.
pub(super) fn stack_rows(
    profile: &Profile,
    done: usize,
) -> impl Iterator<Item = (Option<u32>, u32)> + Clone + use<'_> {
    let node = |index| profile.stacks.node(StackId::from_index(index));
    (done..profile.stacks.len()).map(node).map(|node| (node.caller.map(row), row(node.frame)))
}

/// Builds the stack table from callers and frames.
pub(super) fn stack_table(rows: impl Iterator<Item = (Option<u32>, u32)> + Clone) -> TableWriter {
    TableWriter::default().optional_u32s("caller", Delta, rows.clone().map(|(caller, _)| caller)).u32s(
        "frame",
        Plain,
        rows.map(|(_, frame)| frame),
    )
}

fn samples(profile: &Profile, done: &Rows) -> TableWriter {
    sample_table(sample_rows(profile, done.samples))
}

/// Returns the samples after the first `done`.
pub(super) fn sample_rows(
    profile: &Profile,
    done: usize,
) -> impl Iterator<Item = SampleRow> + Clone + use<'_> {
    let samples = (done..profile.samples.len()).filter_map(|index| profile.samples.get(index));
    samples.map(|sample| SampleRow {
        time_ns: sample.time_ns,
        thread: row(sample.thread),
        cpu: sample.cpu,
        event: row(sample.event),
        stack: sample.stack.map(row),
        weight: sample.weight,
        syscall: sample.syscall,
    })
}

/// A row of the sample table.
#[derive(Clone, Copy)]
pub(super) struct SampleRow {
    pub time_ns: u64,
    pub thread: u32,
    pub cpu: u32,
    pub event: u32,
    pub stack: Option<u32>,
    pub weight: u64,
    pub syscall: Option<u32>,
}

/// Builds the sample table.
pub(super) fn sample_table(samples: impl Iterator<Item = SampleRow> + Clone) -> TableWriter {
    let samples = || samples.clone();
    TableWriter::default()
        .u64s("time_ns", Delta, samples().map(|sample| sample.time_ns))
        .u32s("thread", Dictionary, samples().map(|sample| sample.thread))
        .u32s("cpu", Dictionary, samples().map(|sample| sample.cpu))
        .u32s("event", Dictionary, samples().map(|sample| sample.event))
        .optional_u32s("stack", Delta, samples().map(|sample| sample.stack))
        .u64s("weight", Dictionary, samples().map(|sample| sample.weight))
        .optional_u32s("syscall", Dictionary, samples().map(|sample| sample.syscall))
}

/// Returns the rows after the first `done`.
fn new<T>(rows: &[T], done: usize) -> &[T] {
    rows.get(done..).unwrap_or_default()
}
