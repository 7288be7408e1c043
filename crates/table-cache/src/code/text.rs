//! Code of a file, by its stated addresses.

use std::ops::Range;

use plumb_process::SectionReader;

/// A stretch of code.
pub(super) struct Text {
    pub(super) start: u64,
    pub(super) bytes: Vec<u8>,
}

impl Text {
    /// What of a range of a section can be read.
    pub(super) fn read(section: &SectionReader, range: &Range<u64>) -> Option<Self> {
        let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
        let read = section.read_at(range.start.checked_sub(section.address)?, &mut bytes);
        bytes.truncate(read);
        Some(Self { start: range.start, bytes })
    }
}
