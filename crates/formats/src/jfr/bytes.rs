//! Numbers and strings of a chunk. Invariant: an error has the offset in the file, and a length is compared with the remaining bytes
//! before anything is allocated.

use std::borrow::Cow;

use crate::foreign::ForeignError;

/// Longest string kept, in bytes: a class file has names of up to 65,535 bytes, and many constants may refer to one string.
const MOST_TEXT: usize = 65_535;

/// The unread rest of a part of a chunk.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'b> {
    chunk: &'b [u8],
    /// Offset of the next byte in the chunk.
    at: usize,
    end: usize,
    /// Offset of the chunk in the file.
    base: usize,
    /// Whether integers have variable length.
    packed: bool,
}

/// A string as stored.
#[derive(Clone, Debug)]
pub(super) enum Text<'b> {
    Null,
    Here(Cow<'b, str>),
    /// Number of a string constant.
    Constant(i64),
}

impl<'b> Bytes<'b> {
    pub fn new(chunk: &'b [u8], base: usize) -> Self {
        Bytes { chunk, at: 0, end: chunk.len(), base, packed: false }
    }

    pub fn packed(self, packed: bool) -> Self {
        Bytes { packed, ..self }
    }

    /// Returns the bytes from `start` to `end`.
    pub fn part(&self, start: usize, end: usize) -> Result<Self, ForeignError> {
        let end = end.min(self.chunk.len());
        let part = Bytes { at: start.min(end), end, ..*self };
        if start < end { Ok(part) } else { Err(part.wrong("an offset points outside of the chunk")) }
    }

    /// Returns the offset of the next byte in the chunk.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.end - self.at
    }

    pub fn wrong(&self, message: impl Into<String>) -> ForeignError {
        ForeignError::Jfr { offset: self.base + self.at, message: message.into() }
    }

    pub fn take(&mut self, length: usize) -> Result<&'b [u8], ForeignError> {
        if length > self.left() {
            return Err(self.wrong(format!("{length} bytes are needed and {} are left", self.left())));
        }
        let taken = &self.chunk[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, ForeignError> {
        Ok(self.take(1)?[0])
    }

    /// Reads an integer of `fixed` bytes if integers have a fixed length.
    /// It has that many bits in any case.
    pub fn integer(&mut self, fixed: usize) -> Result<i64, ForeignError> {
        let number = self.wide(fixed)?;
        Ok(if fixed == 4 { i64::from(number as i32) } else { number })
    }

    fn wide(&mut self, fixed: usize) -> Result<i64, ForeignError> {
        if !self.packed {
            let negative = |bytes: &[u8]| bytes.first().is_some_and(|first| first & 0x80 != 0);
            let bytes = self.take(fixed)?;
            let begin = if negative(bytes) { -1_i64 } else { 0 };
            return Ok(bytes.iter().fold(begin, |number, &byte| number << 8 | i64::from(byte)));
        }
        let mut number = 0_u64;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number as i64);
            }
        }
        // The ninth byte has all of its bits.
        Ok((number | u64::from(self.byte()?) << 56) as i64)
    }

    /// Reads the number of items that follow. Each takes at least a byte.
    pub fn count(&mut self, what: &str) -> Result<usize, ForeignError> {
        let before = *self;
        let count = self.integer(4)?;
        let fits = usize::try_from(count).ok().filter(|&count| count <= self.left());
        fits.ok_or_else(|| before.wrong(format!("{count} {what} are more than the bytes that are left")))
    }

    pub fn text(&mut self) -> Result<Text<'b>, ForeignError> {
        let before = *self;
        Ok(match self.byte()? {
            0 => Text::Null,
            1 => Text::Here("".into()),
            2 => Text::Constant(self.integer(8)?),
            3 => {
                let length = self.count("bytes of a string")?;
                let taken = self.take(length)?;
                Text::Here(String::from_utf8_lossy(&taken[..length.min(MOST_TEXT)]))
            }
            4 => {
                let length = self.count("characters of a string")?;
                let mut units = Vec::with_capacity(length.min(MOST_TEXT));
                for place in 0..length {
                    let unit = self.integer(2)? as u16;
                    units.extend((place < MOST_TEXT).then_some(unit));
                }
                Text::Here(String::from_utf16_lossy(&units).into())
            }
            5 => {
                let length = self.count("bytes of a string")?;
                let taken = self.take(length)?;
                Text::Here(taken[..length.min(MOST_TEXT)].iter().map(|&byte| char::from(byte)).collect())
            }
            kind => return Err(before.wrong(format!("strings of kind {kind} are not known"))),
        })
    }
}
