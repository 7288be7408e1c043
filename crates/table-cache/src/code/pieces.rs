//! The code of all gaps of a file.

use std::ops::Range;

use plumb_process::Section;

/// Pieces of code from several addresses, stored one after the other.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Address range of each piece, sorted, and the index of its first byte.
    places: Vec<(Range<u64>, usize)>,
    bytes: Vec<u8>,
}

impl Pieces {
    /// Joins sections, which must be sorted.
    pub(super) fn new(sections: impl IntoIterator<Item = Section>) -> Self {
        let mut pieces = Self::default();
        for Section { address, bytes } in sections {
            let range = address..address.saturating_add(bytes.len() as u64);
            pieces.places.push((range, pieces.bytes.len()));
            pieces.bytes.extend_from_slice(&bytes);
        }
        pieces
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.places.iter().map(|(range, _)| range.clone())
    }

    /// Returns the index of the byte at an address, and the number of bytes from there to the end of its piece.
    pub(super) fn offset(&self, at: u64) -> Option<(usize, usize)> {
        let before = self.places.partition_point(|(range, _)| range.start <= at);
        let (range, offset) =
            self.places.get(before.checked_sub(1)?).filter(|(range, _)| range.contains(&at))?;
        let from_start = (at - range.start) as usize;
        Some((offset + from_start, (range.end - at) as usize))
    }
}
