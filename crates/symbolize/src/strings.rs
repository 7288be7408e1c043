//! String tables of ELF and DWARF.
//!
//! They are often the largest part of a file, and of their strings a profile needs a few hundred: a large one is read
//! string by string.

use std::rc::Rc;

use crate::elf::Image;
use crate::headers::{Compression, Section};
use crate::summary::Missing;

/// Longest string that is taken; longer ones are cut.
const MAX_STRING: u64 = 1 << 16;
/// Bytes that are read for a first try at a string.
const FIRST_READ: u64 = 256;
/// A table up to this size is read as a whole.
const SMALL: u64 = 1 << 19;

/// A string table.
#[derive(Debug, Default)]
pub(crate) enum Strings {
    /// There is none.
    #[default]
    None,
    /// All of it.
    Whole(Vec<u8>),
    /// Read as needed.
    InFile { image: Rc<Image>, section: Section },
}

impl Strings {
    /// The table in a section.
    pub fn read(image: &Rc<Image>, section: &Section) -> Result<Self, Missing> {
        if section.compression == Compression::None && section.size > SMALL {
            return Ok(Self::InFile { image: Rc::clone(image), section: section.clone() });
        }
        image.read(section).map(Self::Whole)
    }

    /// The string at an offset; empty if there is none.
    pub fn get(&self, offset: u64) -> String {
        match self {
            Strings::None => String::new(),
            Strings::Whole(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
                text(rest.unwrap_or_default())
            }
            Strings::InFile { image, section } => in_file(image, section, offset),
        }
    }
}

fn in_file(image: &Image, section: &Section, offset: u64) -> String {
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

/// The text up to the first 0.
fn text(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_STRING as usize)];
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
