//! String tables of ELF and DWARF.
//!
//! They are often the largest part of a file, and of their strings a profile needs a few hundred: a large one is read
//! string by string, until so many were asked for that reading all of it at once is cheaper.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::elf::Image;
use crate::headers::{Compression, INFLATED, Section};
use crate::summary::Missing;

/// Longest string that is taken; longer ones are cut.
const MAX_STRING: u64 = 1 << 16;
/// Bytes that are read for a first try at a string.
const FIRST_READ: u64 = 256;
/// A table up to this size is read as a whole.
const SMALL: u64 = 1 << 19;

/// One string costs about as much as this many bytes of the whole table.
const SHARE: u64 = 1 << 13;
/// A table above this size is never read as a whole.
const LARGE: u64 = 8 << 20;

/// A string table.
#[derive(Debug, Default)]
pub(crate) enum Strings {
    /// There is none.
    #[default]
    None,
    /// All of it.
    Whole(Vec<u8>),
    /// Read as needed.
    InFile(InFile),
}

/// A large table.
#[derive(Debug)]
pub(crate) struct InFile {
    image: Rc<Image>,
    section: Section,
    /// Strings that were read one by one.
    asked: Cell<u64>,
    /// All of it, once much of it was asked for.
    whole: OnceCell<Vec<u8>>,
}

impl Strings {
    /// The table in a section.
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

    /// How many bytes of the table in a section come to be in memory, at the most.
    pub fn bytes(section: &Section) -> u64 {
        match section.compression {
            Compression::None if section.size > LARGE => 0,
            Compression::None => section.size,
            Compression::Header | Compression::OldGnu => section.size.saturating_mul(INFLATED),
        }
    }

    /// The string at an offset; empty if there is none.
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
            // What can't be read is no worse for being asked for once.
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

/// What comes behind an offset.
fn behind(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}

/// The text up to the first 0.
fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_STRING as usize)];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
