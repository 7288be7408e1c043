//! The code of a file, by its stated addresses.

use plumb_process::SectionReader;

/// The code of a file.
pub(super) struct Text {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Text {
    /// All of a section that can be read.
    pub(super) fn read(section: &SectionReader) -> Option<Self> {
        let mut bytes = vec![0; usize::try_from(section.size()).ok()?];
        let read = section.read_at(0, &mut bytes);
        bytes.truncate(read);
        Some(Self { start: section.address, bytes })
    }

    /// The code from an address on.
    pub(super) fn from(&self, at: u64) -> &[u8] {
        let offset = usize::try_from(at.wrapping_sub(self.start)).ok();
        offset.and_then(|offset| self.bytes.get(offset..)).unwrap_or_default()
    }
}
