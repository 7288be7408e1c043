//! Sections of debug files, read in whole or in part. Compressed ones are inflated once and kept on disk from run to run.
//!
//! Debian's debug file of libc has 2.4 MB of compressed entries, and every profile has frames of libc: inflating them
//! took longer than all names of a program without debug information.
//!
//! Invariant: what is kept is found by what the kernel says of the file that it was inflated from ([`Stamp`]), which changes with every
//! write and which nobody can set back. So it needs no trust in names, and the file isn't read to find it.
//!
//! [`Stamp`]: crate::elf::Stamp

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use plumb_process::{DiskCache, DiskCacheEntry};

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::summary::Missing;

/// Version of the form in which sections are kept.
const VERSION: u32 = 2;
/// Most bytes that are kept.
const LIMIT: u64 = 128 << 20;
/// Sections that are smaller, compressed, are inflated in no time.
const SMALL: u64 = 16 << 10;
/// Sections that are larger, inflated, are not kept: they would take the place of all others.
const LARGE: usize = 32 << 20;

/// A section whose contents can be read.
pub(crate) struct Contents<'s> {
    image: Rc<Image>,
    section: &'s Section,
    bytes: Bytes,
    kept: Option<(DiskCache, Vec<u8>)>,
}

/// Where the contents are.
enum Bytes {
    InFile,
    DiskCache(DiskCacheEntry),
    Inflated(Vec<u8>),
}

impl<'s> Contents<'s> {
    /// Those of a section of `image`, from the user's `cache` if it was worth keeping them.
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

    /// How many bytes they are.
    pub fn size(&self) -> u64 {
        match &self.bytes {
            Bytes::InFile => self.section.size,
            Bytes::DiskCache(entry) => entry.size(),
            Bytes::Inflated(bytes) => bytes.len() as u64,
        }
    }

    /// As much of a part as there is.
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

    /// All of them.
    pub fn all(mut self) -> Result<Vec<u8>, Missing> {
        match self.bytes {
            Bytes::InFile => self.image.read(self.section),
            Bytes::Inflated(bytes) => Ok(bytes),
            Bytes::DiskCache(_) => self.read(0..u64::MAX),
        }
    }

    /// Inflates them, and keeps them if that is worth it.
    fn inflate(&mut self) -> Result<(), Missing> {
        let bytes = self.image.read(self.section)?;
        if let Some((kept, key)) = self.kept.as_ref().filter(|_| bytes.len() <= LARGE) {
            kept.put(key, &bytes);
        }
        self.bytes = Bytes::Inflated(bytes);
        Ok(())
    }
}

/// What a section is kept under; `None` if its file can't be told from what it may be a moment later.
fn key(image: &Image, section: &Section) -> Option<Vec<u8>> {
    let mut key = image.stamp.as_ref()?.settled()?.to_vec();
    key.extend(section.offset.to_le_bytes());
    key.extend(section.size.to_le_bytes());
    Some(key)
}
