//! Contents of a section of a Go program, read on demand.

/// Contents of a section, wherever they are stored.
pub trait Bytes {
    /// Fills `into` with the bytes from `offset` on, and returns how many were read: fewer at the end of the section
    /// or if they cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize;

    /// Returns the length in bytes.
    fn len(&self) -> u64;

    /// Returns whether the section is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Bytes for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let length = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        length
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }
}
