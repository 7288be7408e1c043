//! Results that are kept on disk from one run to the next: [`DiskCache`], a folder of small files under the user's cache.
//!
//! Invariant: losing it costs time, never correctness. What can't be read, is damaged, was written by another
//! version or belongs to somebody else was not kept, and no failure reaches the caller. An entry is written beside
//! its place and renamed, so that a reader sees all of it or none.
//!
//! An entry can be read in part: each block of it has a digest.
//!
//! Not here: what is kept. A digest tells damage, not malice: whoever parses an entry checks it as any other file.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use twox_hash::XxHash3_64;

/// What every entry begins with.
const MAGIC: [u8; 8] = *b"plumbkp2";
/// Bytes before the key: magic, version, length of the key, length of the content, digest of the blocks' digests. Behind the key
/// come these, and then the content.
const HEADER: usize = 8 + 4 + 4 + 8 + 8;
/// Bytes of content that share a digest.
const BLOCK: usize = 64 << 10;
/// Bytes of a digest.
const DIGEST: usize = 8;
/// Longest key: in hexadecimal it is the name of a file, which may have 255 bytes.
const MAX_KEY: usize = 100;
/// How many parts of the limit are left after making room, out of [`PARTS`]: room for more than one.
const LEFT: u64 = 7;
const PARTS: u64 = 8;

/// Entries of one kind, found by their keys.
#[derive(Debug)]
pub struct DiskCache {
    /// Where they are; `None` if nothing can be kept.
    folder: Option<PathBuf>,
    version: u32,
    limit: u64,
    /// Bytes in the folder, once they have been added up.
    total: Mutex<Option<u64>>,
}

impl DiskCache {
    /// The entries of `kind` (a word, the folder's name) in `$XDG_CACHE_HOME/plumb`, or `~/.cache/plumb`. Those
    /// written by another `version` are not seen. Together they take at most `limit` bytes.
    pub fn open(kind: &str, version: u32, limit: u64) -> Self {
        match cache_folder() {
            Some(cache) => Self::open_in(&cache, kind, version, limit),
            None => Self::nowhere(),
        }
    }

    /// The same below the folder `cache`.
    pub fn open_in(cache: &Path, kind: &str, version: u32, limit: u64) -> Self {
        let folder = cache.join("plumb").join(kind);
        let folder = is_ours(&folder).then_some(folder);
        Self { folder, version, limit, total: Mutex::default() }
    }

    /// Keeps nothing and has nothing.
    pub fn nowhere() -> Self {
        Self { folder: None, version: 0, limit: 0, total: Mutex::default() }
    }

    /// What was kept under `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let entry = self.entry(key)?;
        entry.read(0..entry.size)
    }

    /// What was kept under `key`, to be read in part.
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
        // Says when it was last of use. Nothing is lost if it can't.
        let _ = file.set_modified(SystemTime::now());
        Some(Entry { file, start, size, digests })
    }

    /// Keeps `content` under `key`, in place of what was there. What was not used for the longest time goes if there
    /// is more than the limit.
    pub fn put(&self, key: &[u8], content: &[u8]) {
        // One that can't be kept is made anew each time, which is all there is to say about it.
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
        // A lock that another thread died with holds a number that is as good as before.
        let mut total = self.total.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // An entry in place of another counts twice, until all are added up again.
        let bytes = total.map_or_else(|| in_order_of_use(folder).1, |bytes| bytes.saturating_add(size));
        *total = Some(if bytes > self.limit { self.make_room(folder, &path) } else { bytes });
        Some(())
    }

    /// Removes the entries that were not used for the longest time, but not the one at `keep`; returns the bytes left.
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

/// An entry whose content is read as needed.
#[derive(Debug)]
pub struct Entry {
    file: File,
    /// Where in the file the content begins.
    start: u64,
    size: u64,
    /// The digests of its blocks.
    digests: Vec<u8>,
}

impl Entry {
    /// Bytes of the content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A part of the content; `None` if it isn't all there, or damaged.
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

/// Where the user's caches are: `$XDG_CACHE_HOME`, or `~/.cache`.
pub fn cache_folder() -> Option<PathBuf> {
    let of_variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    of_variable("XDG_CACHE_HOME").or_else(|| of_variable("HOME").map(|home| home.join(".cache")))
}

/// Whether `folder` is there or can be made, belongs to the user of this process, and nobody else may write to it.
/// Under `sudo` the home may still be that of who called, who must neither be believed nor be left with our files.
fn is_ours(folder: &Path) -> bool {
    // The kernel gives a process' folder to the user as whom the process acts.
    let Ok(own) = fs::metadata("/proc/self") else { return false };
    let Some(nearest) = folder.ancestors().find_map(|path| fs::metadata(path).ok()) else { return false };
    nearest.is_dir() && nearest.uid() == own.uid() && nearest.mode() & 0o022 == 0
}

/// The files in `folder`, the one that was not used for the longest time first, and how many bytes they have.
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

/// A name that no other thread and no other process uses.
fn temporary_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    format!("tmp-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
