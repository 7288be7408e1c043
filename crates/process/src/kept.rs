//! A cache of results on disk between runs: [`DiskCache`], a directory of small files below the user's cache directory.
//!
//! Invariant: losing it costs time, never correctness. An entry that cannot be read, is damaged, was written by another
//! version or belongs to another user counts as absent, and no failure reaches the caller. An entry is written to a temporary
//! file and renamed, so that a reader sees all of it or none.
//!
//! An entry can be read in part: each block has a digest.
//!
//! Does not interpret entries. A digest detects damage, not malice: whoever parses an entry must validate it like any other file.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use twox_hash::XxHash3_64;

/// The first bytes of every entry.
const MAGIC: [u8; 8] = *b"plumbkp2";
/// Size of the header before the key: magic, version, length of the key, length of the content, digest of the blocks' digests. After the key
/// come these digests, and then the content.
const HEADER: usize = 8 + 4 + 4 + 8 + 8;
/// Bytes of content per digest.
const BLOCK: usize = 64 << 10;
/// Size of a digest in bytes.
const DIGEST: usize = 8;
/// Longest key: in hexadecimal it is a file name, which may have 255 bytes.
const MAX_KEY: usize = 100;
/// Share of the limit that remains after eviction, out of [`PARTS`]: leaves room for more than one entry.
const LEFT: u64 = 7;
const PARTS: u64 = 8;

/// Entries of one kind, by key.
#[derive(Debug)]
pub struct DiskCache {
    /// The directory; `None` if nothing can be cached.
    folder: Option<PathBuf>,
    version: u32,
    limit: u64,
    /// Total size of the directory in bytes, once computed.
    total: Mutex<Option<u64>>,
}

impl DiskCache {
    /// Opens the entries of `kind` (a word, the directory's name) in `$XDG_CACHE_HOME/plumb`, or `~/.cache/plumb`. Those
    /// written by another `version` are ignored. Together they take at most `limit` bytes.
    pub fn open(kind: &str, version: u32, limit: u64) -> Self {
        match cache_folder() {
            Some(cache) => Self::open_in(&cache, kind, version, limit),
            None => Self::nowhere(),
        }
    }

    /// Opens entries below the directory `cache`, otherwise as [`open`](Self::open).
    pub fn open_in(cache: &Path, kind: &str, version: u32, limit: u64) -> Self {
        let folder = cache.join("plumb").join(kind);
        let folder = is_ours(&folder).then_some(folder);
        Self { folder, version, limit, total: Mutex::default() }
    }

    /// Creates a cache that stores nothing.
    pub fn nowhere() -> Self {
        Self { folder: None, version: 0, limit: 0, total: Mutex::default() }
    }

    /// Returns the entry for `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let entry = self.entry(key)?;
        entry.read(0..entry.size)
    }

    /// Opens the entry for `key`, to be read in part.
    pub fn entry(&self, key: &[u8]) -> Option<Entry> {
        let mut file = File::open(self.path(key)?).ok()?;
        let length = file.metadata().ok().filter(Metadata::is_file)?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header).ok()?;
        let mut found_key = vec![0; key.len()];
        file.read_exact(&mut found_key).ok()?;
        let size = u64::from_le_bytes(*header[16..].first_chunk()?);
        let size = Some(size).filter(|&size| size <= self.limit && size <= length)?;
        let mut digests = vec![0; usize::try_from(size.div_ceil(BLOCK as u64)).ok()? * DIGEST];
        file.read_exact(&mut digests).ok()?;
        let start = (HEADER + key.len() + digests.len()) as u64;
        if found_key != key || header != self.header(key, size, &digests) || length != start + size {
            return None;
        }
        // Records the time of use. A failure is harmless.
        let _ = file.set_modified(SystemTime::now());
        Some(Entry { file, start, size, digests })
    }

    /// Stores `content` under `key`, replacing an earlier entry. Evicts the least recently used entries if the
    /// limit is exceeded.
    pub fn put(&self, key: &[u8], content: &[u8]) {
        // A failure only means that the result is computed again each time.
        let _ = self.try_put(key, content);
    }

    fn try_put(&self, key: &[u8], content: &[u8]) -> Option<()> {
        let digests: Vec<u8> = content.chunks(BLOCK).flat_map(digest).collect();
        let size = (HEADER + key.len() + digests.len() + content.len()) as u64;
        let path = self.path(key).filter(|_| size <= self.limit)?;
        let folder = self.folder.as_deref()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        if !is_ours(folder) {
            return None;
        }
        let temporary = folder.join(temporary_name());
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(&self.header(key, content.len() as u64, &digests))?;
            file.write_all(key)?;
            file.write_all(&digests)?;
            file.write_all(content)?;
            fs::rename(&temporary, &path)
        };
        if write().is_err() {
            let _ = fs::remove_file(&temporary);
            return None;
        }
        // The number is still valid if another thread panicked while holding the lock.
        let mut total = self.total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // A replaced entry counts twice until the sizes are added up again.
        let bytes = total.map_or_else(|| in_order_of_use(folder).1, |bytes| bytes.saturating_add(size));
        *total = Some(if bytes > self.limit { self.make_room(folder, &path) } else { bytes });
        Some(())
    }

    /// Evicts the least recently used entries, but not the one at `keep`; returns the bytes left.
    fn make_room(&self, folder: &Path, keep: &Path) -> u64 {
        let (entries, mut bytes) = in_order_of_use(folder);
        if bytes <= self.limit {
            return bytes;
        }
        for (_, path, size) in entries {
            if bytes <= self.limit / PARTS * LEFT {
                break;
            }
            if path != keep && fs::remove_file(&path).is_ok() {
                bytes -= size;
            }
        }
        bytes
    }

    fn path(&self, key: &[u8]) -> Option<PathBuf> {
        let folder = self.folder.as_ref().filter(|_| (1..=MAX_KEY).contains(&key.len()))?;
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        Some(folder.join(name))
    }

    fn header(&self, key: &[u8], size: u64, digests: &[u8]) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&self.version.to_le_bytes());
        header[12..16].copy_from_slice(&(key.len() as u32).to_le_bytes());
        header[16..24].copy_from_slice(&size.to_le_bytes());
        header[24..].copy_from_slice(&digest(digests));
        header
    }
}

/// An entry whose content is read on demand.
#[derive(Debug)]
pub struct Entry {
    file: File,
    /// Offset of the content in the file.
    start: u64,
    size: u64,
    /// Digests of the blocks.
    digests: Vec<u8>,
}

impl Entry {
    /// Returns the size of the content in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads a part of the content; `None` if it is incomplete or damaged.
    pub fn read(&self, range: Range<u64>) -> Option<Vec<u8>> {
        if range.is_empty() {
            return Some(Vec::new());
        }
        let block = BLOCK as u64;
        let begin = range.start - range.start % block;
        let end = range.end.checked_next_multiple_of(block)?.min(self.size);
        let mut bytes = vec![0; usize::try_from(end.checked_sub(begin)?).ok()?];
        self.file.read_exact_at(&mut bytes, self.start.checked_add(begin)?).ok()?;
        let first = usize::try_from(begin / block).ok()? * DIGEST;
        let digests = self.digests.get(first..)?.chunks(DIGEST);
        if !bytes.chunks(BLOCK).zip(digests).all(|(bytes, found)| digest(bytes) == found) {
            return None;
        }
        bytes.truncate(usize::try_from(range.end - begin).ok().filter(|&end| end <= bytes.len())?);
        bytes.drain(..usize::try_from(range.start - begin).ok()?);
        Some(bytes)
    }
}

fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    XxHash3_64::oneshot(bytes).to_le_bytes()
}

/// Returns the user's cache directory: `$XDG_CACHE_HOME`, or `~/.cache`.
pub fn cache_folder() -> Option<PathBuf> {
    let of_variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    of_variable("XDG_CACHE_HOME").or_else(|| of_variable("HOME").map(|home| home.join(".cache")))
}

/// Whether `folder` exists or can be created, belongs to the user of this process, and is not writable for others.
/// Under `sudo` the home directory may be the caller's, whose files must not be trusted, and who must not be left with ours.
fn is_ours(folder: &Path) -> bool {
    // The owner of a process' directory is its effective user.
    let Ok(own) = fs::metadata("/proc/self") else { return false };
    let Some(nearest) = folder.ancestors().find_map(|path| fs::metadata(path).ok()) else { return false };
    nearest.is_dir() && nearest.uid() == own.uid() && nearest.mode() & 0o022 == 0
}

/// Returns the files in `folder`, least recently used first, and their total size in bytes.
fn in_order_of_use(folder: &Path) -> (Vec<(SystemTime, PathBuf, u64)>, u64) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = files
        .filter_map(|entry| {
            let meta = entry.metadata().ok().filter(Metadata::is_file)?;
            Some((meta.modified().ok()?, entry.path(), meta.len()))
        })
        .collect();
    files.sort();
    let bytes = files.iter().map(|&(_, _, size)| size).sum();
    (files, bytes)
}

/// Returns a name that no other thread or process uses.
fn temporary_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("tmp-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
