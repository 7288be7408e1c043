//! Directories: the files of one that `perf record --threads` wrote, and words for what another one looks like.
//!
//! Listings are bounded: a directory may have any number of files.

use std::fs::{DirEntry, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::NEEDED;
use plumb_formats::kind::{self, FileKind};

/// Largest number of files with samples: perf writes one for each processor.
const MOST_FILES: usize = 8192;

/// Maximum number of entries examined to describe a directory.
const LOOKED_AT: usize = 500;

/// The file of a perf directory that has the header.
const HEADER: &str = "data";

/// The files with the samples of a perf directory.
pub struct RingFiles {
    /// By number, with their names.
    pub files: Vec<(String, File)>,
    /// Numbers that are missing between others.
    pub missing: Vec<usize>,
}

/// Returns the path of `data` in a directory that `perf record --threads` wrote. The error describes any other directory.
pub fn header_file(directory: &Path, name: &str) -> Result<PathBuf> {
    let header = directory.join(HEADER);
    if is_perf_data(&header) { Ok(header) } else { Err(anyhow!("{name}: {}", looks(directory, name)?)) }
}

/// Whether this is the file with the header of a perf directory, with files of samples beside it.
pub fn is_header_file(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| name == HEADER);
    named && path.with_file_name("data.0").is_file() && is_perf_data(path)
}

fn is_perf_data(path: &Path) -> bool {
    start(path).is_some_and(|start| FileKind::of(&start) == FileKind::PerfData)
}

/// Opens the files `data.0`, `data.1`, … beside the file with the header.
pub fn ring_files(header: &Path) -> Result<RingFiles> {
    let directory = match header.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let failed = || directory.display().to_string();
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    for entry in directory.read_dir().with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let Some(number) = ring_number(&entry) else { continue };
        // A pipe would be waited for.
        if !entry.path().is_file() {
            continue;
        }
        if found.len() == MOST_FILES {
            bail!("{}: more than {MOST_FILES} files data.N, which perf can't have written", failed());
        }
        found.push((number, entry.path()));
    }
    found.sort();
    let mut missing = Vec::new();
    let mut files = Vec::new();
    for (number, path) in found {
        let expected = files.len() + missing.len();
        missing.extend((expected..number).take(MOST_FILES.saturating_sub(missing.len())));
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        files.push((format!("data.{number}"), file));
    }
    Ok(RingFiles { files, missing })
}

/// The number of a file `data.N`.
fn ring_number(entry: &DirEntry) -> Option<usize> {
    let name = entry.file_name();
    let digits = name.to_str()?.strip_prefix("data.")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The first bytes of a regular file.
fn start(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    let file = Some(path).filter(|path| path.is_file()).and_then(|path| File::open(path).ok())?;
    file.take(kind::KIND_BYTES).read_to_end(&mut start).ok()?;
    Some(start)
}

/// Describes a directory that perf did not write, and the remedy.
fn looks(directory: &Path, name: &str) -> Result<String> {
    let mut entries: Vec<DirEntry> =
        directory.read_dir().with_context(|| name.to_owned())?.flatten().take(LOOKED_AT).collect();
    entries.sort_by_key(DirEntry::file_name);
    let has = |name: &str| directory.join(name).exists();
    let begins =
        |name: &str, with: &[u8]| start(&directory.join(name)).is_some_and(|start| start.starts_with(with));
    if entries.is_empty() {
        return Ok(format!("an empty directory; {NEEDED}"));
    }
    if entries.iter().any(|entry| ring_number(entry).is_some()) {
        return Ok("files data.N of `perf record --threads` without the file `data`, which says what is in them; copy the whole \
                   directory"
            .into());
    }
    if has("blocks") && has("log") {
        let quoted = shell_words::quote(name);
        return Ok(format!(
            "the store of a server; run `plumb serve --store {quoted}`, then ask it by `plumb query`"
        ));
    }
    if begins("metadata", b"/* CTF") {
        return Ok("a trace in CTF (of LTTng, or `perf data convert --to-ctf`), which plumb cannot read; name the perf.data it was \
                   made of"
            .into());
    }
    if begins("info", b"Ftrace!") {
        return Ok(
            "a recording of uftrace, which plumb cannot read; `uftrace dump --chrome -d DIR > trace.json` makes trace events \
             of it, which plumb reads"
                .into(),
        );
    }
    let profile = entries.iter().map(DirEntry::path).find(|path| {
        let kind = start(path).map(|start| FileKind::of(&start));
        matches!(kind, Some(FileKind::Recording | FileKind::Unfinished | FileKind::PerfData))
    });
    Ok(match profile {
        Some(path) => format!("a directory, not a profile; name a file in it, such as {}", path.display()),
        None => format!("a directory in which plumb recognizes no profile; name a file in it; {NEEDED}"),
    })
}
