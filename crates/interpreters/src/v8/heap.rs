//! Objects of V8's heap in the memory of a process. A tagged word is a small integer, or the address of an object plus 1 (plus 3 if the reference is weak).

use crate::memory::head;
use crate::{Memory, Unreadable};

use super::kernel::MAP_TYPE;
use super::layout::V8Layout;
use super::positions::{self, Entry};

/// Bytes of an object before its contents: its map, and a length.
const HEADER: u64 = 16;
/// Offset of a string's length: behind its hash.
const STRING_LENGTH: u64 = 12;
/// The first instance type that is not a string's.
const FIRST_OTHER: u16 = 128;
/// Bits of a string's instance type: its representation, and whether each character is one byte.
const REPRESENTATION: u16 = 7;
const ONE_BYTE: u16 = 8;
/// Strings that lead to others, at most.
const MAX_PARTS: usize = 64;
/// Most bytes of a table of source positions.
const MAX_TABLE: usize = 4 << 20;
/// Longest string of source text, in bytes.
const MAX_TEXT: u64 = 64 << 20;

/// A tagged word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tagged(pub(super) u64);

impl Tagged {
    /// The address of the object, if it leads to one.
    pub(super) fn address(self) -> Option<u64> {
        (self.0 & 1 == 1).then_some(self.0 & !3)
    }

    /// The value of a small integer.
    pub(super) fn integer(self) -> Option<i32> {
        (self.0 & 0xffff_ffff == 0).then_some((self.0 >> 32) as i32)
    }
}

/// The heap of a process.
#[derive(Clone, Copy)]
pub(super) struct Heap<'m> {
    pub(super) memory: &'m dyn Memory,
    pub(super) layout: &'m V8Layout,
}

/// The characters of a string.
pub(super) enum Text {
    /// Latin-1.
    OneByte(Vec<u8>),
    /// UTF-16.
    TwoByte(Vec<u16>),
}

impl Text {
    fn decode(&self) -> String {
        match self {
            Text::OneByte(bytes) => bytes.iter().map(|&byte| char::from(byte)).collect(),
            Text::TwoByte(units) => String::from_utf16_lossy(units),
        }
    }
}

impl Heap<'_> {
    /// The object at its present address. A collector that has moved it leaves the new address in place of the map, until the memory is used again.
    pub(super) fn moved(self, object: Tagged) -> Tagged {
        match self.field(object, 0) {
            Ok(Tagged(address)) if address != 0 && address & 7 == 0 => Tagged(address | 1),
            _ => object,
        }
    }

    /// The tagged word at an offset in an object.
    pub(super) fn field(self, object: Tagged, offset: u32) -> Result<Tagged, Unreadable> {
        let at = object.address().ok_or(Unreadable(object.0))?;
        Ok(Tagged(self.memory.word(at.wrapping_add(offset.into()))?))
    }

    /// The word at an index behind an object's map.
    pub(super) fn slot(self, object: Tagged, index: u32) -> Result<Tagged, Unreadable> {
        self.field(object, index.saturating_add(1).saturating_mul(8))
    }

    /// The instance type of an object.
    pub(super) fn kind(self, object: Tagged) -> Result<u16, Unreadable> {
        let map = self.field(object, 0)?.address().ok_or(Unreadable(object.0))?;
        Ok(u16::from_le_bytes(head(self.memory, map.wrapping_add(MAP_TYPE.into()))?))
    }

    /// Whether a word leads to an object of this instance type.
    pub(super) fn is(self, object: Tagged, kind: u16) -> bool {
        object.address().is_some() && self.kind(object) == Ok(kind)
    }

    /// The bytes of an array of bytes.
    pub(super) fn bytes(self, array: Tagged, most: usize) -> Result<Vec<u8>, Unreadable> {
        let length = self.length(array)?.min(most);
        self.copy(array.0 & !3, HEADER, length)
    }

    /// The entries of a table of source positions.
    pub(super) fn positions(self, table: Tagged) -> Result<Vec<Entry>, Unreadable> {
        Ok(positions::decode(&self.bytes(table, MAX_TABLE)?, self.layout.form))
    }

    /// An element of an array of tagged words.
    pub(super) fn element(self, array: Tagged, index: u32) -> Result<Tagged, Unreadable> {
        if index as usize >= self.length(array)? {
            return Err(Unreadable(array.0));
        }
        self.slot(array, index.saturating_add(1))
    }

    fn length(self, array: Tagged) -> Result<usize, Unreadable> {
        let length = self.slot(array, 0)?.integer().and_then(|length| usize::try_from(length).ok());
        length.ok_or(Unreadable(array.0))
    }

    fn copy(self, at: u64, offset: u64, length: usize) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = vec![0; length];
        let is_read = length == 0 || self.memory.read(at.wrapping_add(offset), &mut bytes);
        is_read.then_some(bytes).ok_or(Unreadable(at))
    }

    /// A string, or `None` if a word leads to another object. Longer ones than `most` characters are cut.
    pub(super) fn string(self, object: Tagged, most: u64) -> Result<Option<String>, Unreadable> {
        if object.address().is_none() || self.kind(object)? >= FIRST_OTHER {
            return Ok(None);
        }
        let mut text = String::new();
        let mut parts = vec![object];
        for _ in 0..MAX_PARTS {
            let Some(part) = parts.pop() else { break };
            match self.part(part, most)? {
                Part::Text(part) => text.push_str(&part.decode()),
                Part::Of(first, second) => parts.extend([second, first].into_iter().flatten()),
            }
            if text.len() as u64 >= most {
                break;
            }
        }
        Ok(Some(text))
    }

    /// The characters of a string that is in one piece, such as source text.
    pub(super) fn text(self, mut object: Tagged) -> Result<Text, Unreadable> {
        for _ in 0..MAX_PARTS {
            match self.part(object, MAX_TEXT)? {
                Part::Text(text) => return Ok(text),
                // A string that was put together and is in one piece now has an empty second part.
                Part::Of(Some(whole), _) => object = whole,
                Part::Of(None, _) => break,
            }
        }
        Err(Unreadable(object.0))
    }

    fn part(self, object: Tagged, most: u64) -> Result<Part, Unreadable> {
        const SEQUENCE: u16 = 0;
        const PAIR: u16 = 1;
        const EXTERNAL: u16 = 2;
        const SLICE: u16 = 3;
        const THIN: u16 = 5;
        let kind = self.kind(object)?;
        let at = object.address().filter(|_| kind < FIRST_OTHER).ok_or(Unreadable(object.0))?;
        let length = u32::from_le_bytes(head(self.memory, at.wrapping_add(STRING_LENGTH))?);
        let length = u64::from(length).min(most) as usize;
        let is_one_byte = kind & ONE_BYTE != 0;
        match kind & REPRESENTATION {
            SEQUENCE => Ok(Part::Text(self.characters(at, HEADER, length, is_one_byte)?)),
            PAIR => Ok(Part::Of(Some(self.slot(object, 1)?), Some(self.slot(object, 2)?))),
            THIN => Ok(Part::Of(Some(self.slot(object, 1)?), None)),
            // The characters are not on the heap: their address is behind that of their owner.
            EXTERNAL => {
                let data = self.slot(object, 2)?.0;
                Ok(Part::Text(self.characters(data, 0, length, is_one_byte)?))
            }
            SLICE => {
                let offset = self.slot(object, 2)?.integer().and_then(|offset| u64::try_from(offset).ok());
                let offset = offset.ok_or(Unreadable(at))?;
                self.slice(self.slot(object, 1)?, offset, length, most)
            }
            _ => Err(Unreadable(at)),
        }
    }

    /// A part of another string, which is in one piece.
    fn slice(self, parent: Tagged, offset: u64, length: usize, most: u64) -> Result<Part, Unreadable> {
        let kind = self.kind(parent)?;
        let at = parent.address().filter(|_| kind < FIRST_OTHER).ok_or(Unreadable(parent.0))?;
        let (at, header) = match kind & REPRESENTATION {
            0 => (at, HEADER),
            2 => (self.slot(parent, 2)?.0, 0),
            _ => return Err(Unreadable(at)),
        };
        let is_one_byte = kind & ONE_BYTE != 0;
        let skipped = offset.min(MAX_TEXT) * if is_one_byte { 1 } else { 2 };
        let length = length.min(most as usize);
        Ok(Part::Text(self.characters(at, header + skipped, length, is_one_byte)?))
    }

    fn characters(self, at: u64, offset: u64, length: usize, is_one_byte: bool) -> Result<Text, Unreadable> {
        if is_one_byte {
            return Ok(Text::OneByte(self.copy(at, offset, length)?));
        }
        let bytes = self.copy(at, offset, length.saturating_mul(2))?;
        Ok(Text::TwoByte(bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect()))
    }
}

/// A string, or those that it consists of.
enum Part {
    Text(Text),
    Of(Option<Tagged>, Option<Tagged>),
}
