//! Writes a recording: `meta.json`, then a table for each table of the model.

use std::fmt;
use std::io::{Seek, Write};

use plumb_profile::{DsoKind, FrameId, Id, Profile};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::column::Packing::{Delta, Dictionary, Plain};
use super::lives;
use super::meta::MetaFile;
use super::names;
use super::table::TableWriter;

/// Why a recording could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output did not take an entry of the archive: most often the disk is full.
    Output {
        /// The entry, such as `samples.parquet`; empty for the archive's directory.
        entry: &'static str,
        /// What the output said.
        error: std::io::Error,
    },
    /// A table could not be encoded.
    Encode {
        /// The entry, such as `samples.parquet`.
        entry: &'static str,
        /// What the encoder said.
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

/// Writes `profile` as a recording. What is in `out` is a recording once this has returned, not before.
pub fn write<W: Write + Seek>(profile: &Profile, out: W) -> Result<(), WriteError> {
    let mut archive = ZipWriter::new(out);
    let entry = "meta.json";
    let mut meta = serde_json::to_vec_pretty(&MetaFile::new(&profile.meta))
        .map_err(|error| WriteError::Encode { entry, message: error.to_string() })?;
    meta.push(b'\n');
    add(&mut archive, entry, &meta)?;
    for (entry, build) in TABLES {
        let bytes = build(profile)
            .finish()
            .map_err(|error| WriteError::Encode { entry, message: error.to_string() })?;
        add(&mut archive, entry, &bytes)?;
    }
    let mut out = archive.finish().map_err(|error| WriteError::Output { entry: "", error: error.into() })?;
    out.flush().map_err(|error| WriteError::Output { entry: "", error })
}

fn add<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    entry: &'static str,
    bytes: &[u8],
) -> Result<(), WriteError> {
    // Large files need the wide header, which costs 20 bytes an entry.
    let large = bytes.len() as u64 >= u32::MAX.into();
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(large);
    archive.start_file(entry, options).map_err(|error| WriteError::Output { entry, error: error.into() })?;
    archive.write_all(bytes).map_err(|error| WriteError::Output { entry, error })
}

/// What fills a table.
type Build = fn(&Profile) -> TableWriter;

/// The entries in the order in which they are written.
const TABLES: [(&str, Build); 12] = [
    ("strings.parquet", strings),
    ("events.parquet", events),
    ("dsos.parquet", dsos),
    ("processes.parquet", processes),
    ("threads.parquet", threads),
    ("lives.parquet", lives::table),
    ("mappings.parquet", mappings),
    ("frames.parquet", frames),
    ("functions.parquet", functions),
    ("lines.parquet", lines),
    ("stacks.parquet", stacks),
    ("samples.parquet", samples),
];

/// An id as its column holds it.
pub(super) fn row(id: impl Id) -> u32 {
    // Ids are 32 bits wide.
    id.index() as u32
}

fn strings(profile: &Profile) -> TableWriter {
    TableWriter::default().texts("text", Plain, profile.strings.iter())
}

fn events(profile: &Profile) -> TableWriter {
    let events = profile.events.rows();
    TableWriter::default().u32s("name", Plain, events.iter().map(|event| row(event.name))).u32s(
        "unit",
        Plain,
        events.iter().map(|event| row(event.unit)),
    )
}

fn dsos(profile: &Profile) -> TableWriter {
    let dsos = profile.dsos.rows();
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

fn processes(profile: &Profile) -> TableWriter {
    let processes = profile.processes.rows();
    TableWriter::default()
        .u32s("pid", Delta, processes.iter().map(|process| process.pid))
        .u32s("ppid", Delta, processes.iter().map(|process| process.ppid))
        .u32s("exe", Delta, processes.iter().map(|process| row(process.exe)))
}

fn threads(profile: &Profile) -> TableWriter {
    let threads = profile.threads.rows();
    TableWriter::default()
        .u32s("process", Delta, threads.iter().map(|thread| row(thread.process)))
        .u32s("tid", Delta, threads.iter().map(|thread| thread.tid))
        .u32s("comm", Delta, threads.iter().map(|thread| row(thread.comm)))
}

fn mappings(profile: &Profile) -> TableWriter {
    let mappings = &profile.mappings;
    TableWriter::default()
        .u32s("process", Delta, mappings.iter().map(|mapping| row(mapping.process)))
        .u32s("dso", Plain, mappings.iter().map(|mapping| row(mapping.dso)))
        .u64s("start", Plain, mappings.iter().map(|mapping| mapping.start))
        .u64s("end", Plain, mappings.iter().map(|mapping| mapping.end))
        .u64s("bias", Plain, mappings.iter().map(|mapping| mapping.bias))
}

fn frames(profile: &Profile) -> TableWriter {
    let frames = profile.frames.rows();
    TableWriter::default()
        .texts("kind", Dictionary, frames.iter().map(|frame| names::of_frame_kind(frame.kind)))
        .optional_texts("cut", frames.iter().map(|frame| frame.cut().map(|cut| cut.name())))
        .optional_u32s("dso", Plain, frames.iter().map(|frame| frame.dso.map(row)))
        .u64s("address", Plain, frames.iter().map(|frame| frame.address.0))
        .bools("is_return", frames.iter().map(|frame| frame.is_return))
        .texts("found", Dictionary, frames.iter().map(|frame| names::of_found(frame.found)))
}

fn functions(profile: &Profile) -> TableWriter {
    let functions = profile.symbols.functions.rows();
    TableWriter::default()
        .u32s("name", Plain, functions.iter().map(|function| row(function.name)))
        .u32s("linkage_name", Plain, functions.iter().map(|function| row(function.linkage_name)))
        .optional_u32s("dso", Plain, functions.iter().map(|function| function.dso.map(row)))
        .optional_u64s("start", Plain, functions.iter().map(|function| function.start.map(|start| start.0)))
        .u32s("source_file", Plain, functions.iter().map(|function| row(function.source_file)))
}

fn lines(profile: &Profile) -> TableWriter {
    let frames =
        || (0..profile.frames.len()).map(FrameId::from_index).map(|frame| (frame, profile.symbols.of(frame)));
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

fn stacks(profile: &Profile) -> TableWriter {
    TableWriter::default()
        .optional_u32s("caller", Delta, profile.stacks.iter().map(|(_, node)| node.caller.map(row)))
        .u32s("frame", Plain, profile.stacks.iter().map(|(_, node)| row(node.frame)))
}

fn samples(profile: &Profile) -> TableWriter {
    let samples = || profile.samples.iter();
    TableWriter::default()
        .u64s("time_ns", Delta, samples().map(|sample| sample.time_ns))
        .u32s("thread", Dictionary, samples().map(|sample| row(sample.thread)))
        .u32s("cpu", Dictionary, samples().map(|sample| sample.cpu))
        .u32s("event", Dictionary, samples().map(|sample| row(sample.event)))
        .optional_u32s("stack", Delta, samples().map(|sample| sample.stack.map(row)))
        .u64s("weight", Dictionary, samples().map(|sample| sample.weight))
        .optional_u32s("syscall", Dictionary, samples().map(|sample| sample.syscall))
}
