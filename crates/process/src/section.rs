//! A section read on demand in pieces. A few pieces are cached.
//!
//! Elsewhere: the location of sections in a file (`elf`).

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Size of a piece in bytes.
const PIECE: u64 = 64 << 10;
/// Number of pieces cached: more than the number of positions that are read in turn.
const KEPT: usize = 24;

/// A section that is read on demand.
pub struct SectionReader {
    /// Address of the first byte, as stated in the file.
    pub address: u64,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    File { file: File, place: Range<u64>, pieces: RefCell<Vec<Piece>> },
}

/// A cached piece of a section.
struct Piece {
    number: u64,
    bytes: Vec<u8>,
}

impl fmt::Debug for SectionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SectionReader({:#x}, {} bytes)", self.address, self.size())
    }
}

impl SectionReader {
    /// Creates it for a byte range of a file.
    pub(crate) fn of_file(address: u64, file: File, place: Range<u64>) -> Self {
        Self { address, content: Content::File { file, place, pieces: RefCell::default() } }
    }

    /// Creates it for bytes in memory.
    pub(crate) fn of_bytes(address: u64, bytes: Vec<u8>) -> Self {
        Self { address, content: Content::Bytes(bytes) }
    }

    /// Returns the size of the section in bytes.
    pub fn size(&self) -> u64 {
        match &self.content {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File { place, .. } => place.end.saturating_sub(place.start),
        }
    }

    /// Fills `into` with the bytes from `offset` on and returns their number: fewer at the end, or if the file cannot be
    /// read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_some(offset.saturating_add(done as u64), rest) {
                0 => break,
                read => done += read,
            }
        }
        done
    }

    /// Reads as much as one piece contains.
    fn read_some(&self, offset: u64, into: &mut [u8]) -> usize {
        let copy = |bytes: &[u8], offset: u64, into: &mut [u8]| {
            let bytes =
                usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
            let length = bytes.len().min(into.len());
            into[..length].copy_from_slice(&bytes[..length]);
            length
        };
        let (file, place, pieces) = match &self.content {
            Content::Bytes(bytes) => return copy(bytes, offset, into),
            Content::File { file, place, pieces } => (file, place, pieces),
        };
        if offset >= self.size() {
            return 0;
        }
        let (number, mut pieces) = (offset / PIECE, pieces.borrow_mut());
        let found = pieces.iter().position(|piece| piece.number == number);
        let at = found.unwrap_or_else(|| {
            // Evicts the least recently used piece.
            let old = if pieces.len() < KEPT { None } else { pieces.pop() };
            let mut bytes = old.map(|old| old.bytes).unwrap_or_default();
            read_piece(file, place, number, &mut bytes);
            pieces.push(Piece { number, bytes });
            pieces.len() - 1
        });
        pieces[..=at].rotate_right(1);
        pieces.first().map_or(0, |piece| copy(&piece.bytes, offset % PIECE, into))
    }
}

/// Reads a piece, as far as possible.
fn read_piece(file: &File, place: &Range<u64>, number: u64, bytes: &mut Vec<u8>) {
    let start = place.start.saturating_add(number * PIECE);
    let length = place.end.saturating_sub(start).min(PIECE);
    bytes.clear();
    bytes.resize(length as usize, 0);
    let read = read_most(file, start, bytes);
    bytes.truncate(read);
}

/// Fills `into` with a file's bytes from `offset` on and returns their number: fewer at its end, or if it cannot be read.
pub fn read_most(file: &File, offset: u64, into: &mut [u8]) -> usize {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(done as u64)) {
            Ok(0) | Err(_) => break,
            Ok(read) => done += read,
        }
    }
    done
}

#[cfg(test)]
#[path = "section_tests.rs"]
mod tests;
