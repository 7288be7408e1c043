//! Sections of debug files, read in whole or in part. Compressed ones are decompressed once and cached on disk between runs.
//!
//! Debian's debug file of libc has 2.4 MB of compressed entries, and every profile has frames of libc: decompressing them
//! took longer than finding all names of a program without debug information.
//!
//! Invariant: the cache key is the kernel's description of the source file ([`Stamp`]), which changes with every
//! write and which nobody can set back. So names need not be trusted, and the file need not be read to find the entry.
//!
//! [`Stamp`]: crate::elf::Stamp

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use plumb_process::{DiskCache, DiskCacheEntry};

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::summary::Missing;

/// Version of the cached format.
const VERSION: u32 = 2;
/// Size limit of the cache, in bytes.
const LIMIT: u64 = 128 << 20;
/// Compressed sections smaller than this are not cached: decompressing them takes hardly any time.
const SMALL: u64 = 16 << 10;
/// Decompressed sections larger than this are not cached: they would evict all others.
const LARGE: usize = 32 << 20;

/// A section whose contents can be read.
pub(crate) struct Contents<'s> {
    image: Rc<Image>,
    section: &'s Section,
    bytes: Bytes,
    kept: Option<(DiskCache, Vec<u8>)>,
}

/// The source of the contents.
enum Bytes {
    InFile,
    DiskCache(DiskCacheEntry),
    Inflated(Vec<u8>),
}

impl<'s> Contents<'s> {
    /// Opens a section of `image`, from the user's `cache` if it is there.
    pub fn open(image: &Rc<Image>, section: &'s Section, cache: Option<&Path>) -> Result<Self, Missing> {
        let mut contents = Self { image: Rc::clone(image), section, bytes: Bytes::InFile, kept: None };
        if section.compression == Compression::None {
            return Ok(contents);
        }
        contents.kept = cache.filter(|_| section.size >= SMALL).and_then(|cache| {
            Some((DiskCache::open_in(cache, "sections", VERSION, LIMIT), key(image, section)?))
        });
        let entry = contents.kept.as_ref().and_then(|(kept, key)| kept.entry(key));
        match entry {
            Some(entry) => contents.bytes = Bytes::DiskCache(entry),
            None => contents.inflate()?,
        }
        Ok(contents)
    }

    /// Returns the size of the contents in bytes.
    pub fn size(&self) -> u64 {
        match &self.bytes {
            Bytes::InFile => self.section.size,
            Bytes::DiskCache(entry) => entry.size(),
            Bytes::Inflated(bytes) => bytes.len() as u64,
        }
    }

    /// Reads a range, as far as it exists.
    pub fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>, Missing> {
        let range = range.start.min(self.size())..range.end.min(self.size());
        if let Bytes::DiskCache(entry) = &self.bytes {
            if let Some(part) = entry.read(range.clone()) {
                return Ok(part);
            }
            self.inflate()?;
        }
        match &self.bytes {
            Bytes::Inflated(bytes) => {
                let at = |place| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes.get(at(range.start)..at(range.end)).unwrap_or_default().to_vec())
            }
            _ => {
                let offset = self.section.offset.saturating_add(range.start);
                self.image.read_range(offset, range.end.saturating_sub(range.start))
            }
        }
    }

    /// Returns the whole contents.
    pub fn all(mut self) -> Result<Vec<u8>, Missing> {
        match self.bytes {
            Bytes::InFile => self.image.read(self.section),
            Bytes::Inflated(bytes) => Ok(bytes),
            Bytes::DiskCache(_) => self.read(0..u64::MAX),
        }
    }

    /// Decompresses the contents, and caches them if worthwhile.
    fn inflate(&mut self) -> Result<(), Missing> {
        let bytes = self.image.read(self.section)?;
        if let Some((kept, key)) = self.kept.as_ref().filter(|_| bytes.len() <= LARGE) {
            kept.put(key, &bytes);
        }
        self.bytes = Bytes::Inflated(bytes);
        Ok(())
    }
}

/// Returns the cache key of a section; `None` if its file was changed too recently to be distinguished from a later state.
fn key(image: &Image, section: &Section) -> Option<Vec<u8>> {
    let mut key = image.stamp.as_ref()?.settled()?.to_vec();
    key.extend(section.offset.to_le_bytes());
    key.extend(section.size.to_le_bytes());
    Some(key)
}
