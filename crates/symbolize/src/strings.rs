//! String tables of ELF and DWARF.
//!
//! String tables are often the largest part of a file, and a profile needs a few hundred of their strings: a large table is read
//! string by string, until so many were requested that reading all of it is cheaper.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::elf::Image;
use crate::headers::{Compression, INFLATED, Section};
use crate::summary::Missing;

/// Longest string; longer ones are truncated.
const MAX_STRING: u64 = 1 << 16;
/// Size of the first read for a string, in bytes.
const FIRST_READ: u64 = 256;
/// A table up to this size is read as a whole.
const SMALL: u64 = 1 << 19;

/// Cost of reading one string, in bytes of the whole table.
const SHARE: u64 = 1 << 13;
/// A table above this size is never read as a whole.
const LARGE: u64 = 8 << 20;

/// A string table.
#[derive(Debug, Default)]
pub(crate) enum Strings {
    /// No table.
    #[default]
    None,
    /// The whole table in memory.
    Whole(Vec<u8>),
    /// A table read on demand.
    InFile(InFile),
}

/// A large table.
#[derive(Debug)]
pub(crate) struct InFile {
    image: Rc<Image>,
    section: Section,
    /// Number of strings read one by one.
    asked: Cell<u64>,
    /// The whole table, once many of its strings were requested.
    whole: OnceCell<Vec<u8>>,
}

impl Strings {
    /// Opens the table in a section.
    pub fn read(image: &Rc<Image>, section: &Section) -> Result<Self, Missing> {
        if section.compression == Compression::None && section.size > SMALL {
            return Ok(Self::InFile(InFile {
                image: Rc::clone(image),
                section: section.clone(),
                asked: Cell::new(0),
                whole: OnceCell::new(),
            }));
        }
        image.read(section).map(Self::Whole)
    }

    /// Returns the most bytes of a section's table that end up in memory.
    pub fn bytes(section: &Section) -> u64 {
        match section.compression {
            Compression::None if section.size > LARGE => 0,
            Compression::None => section.size,
            Compression::Header | Compression::OldGnu => section.size.saturating_mul(INFLATED),
        }
    }

    /// Returns the string at an offset; empty if there is none.
    pub fn get(&self, offset: u64) -> String {
        match self {
            Strings::None => String::new(),
            Strings::Whole(bytes) => text(behind(bytes, offset)),
            Strings::InFile(file) => file.get(offset),
        }
    }
}

impl InFile {
    fn get(&self, offset: u64) -> String {
        let (image, section) = (&self.image, &self.section);
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() > section.size / SHARE && section.size <= LARGE {
            // If it cannot be read, the single string could not either.
            let whole = self.whole.get_or_init(|| image.read(section).unwrap_or_default());
            return text(behind(whole, offset));
        }
        let rest = section.size.saturating_sub(offset);
        let mut bytes = Vec::new();
        for size in [FIRST_READ, MAX_STRING] {
            let Some(start) = section.offset.checked_add(offset) else { break };
            bytes = image.read_up_to(start, size.min(rest)).unwrap_or_default();
            if bytes.contains(&0) {
                break;
            }
        }
        text(&bytes)
    }
}

/// Returns the bytes from an offset on.
fn behind(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

/// Returns the text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_STRING as usize)];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
