//! Recognises file formats by their first bytes.

use crate::native::UNFINISHED;

/// Number of bytes that [`FileKind::of`] needs, if the file has as many.
pub const KIND_BYTES: u64 = 512;

/// A recognised kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A zip archive, which recordings are.
    Recording,
    /// A recording in progress, or one that was not finished.
    Unfinished,
    /// perf.data in file or pipe mode.
    PerfData,
    /// A compressed file of one of these kinds.
    Packed,
    /// Possibly a profile of another tool: its content has to be inspected.
    Foreign,
    /// An unsupported file, with a description.
    Other(&'static str),
}

/// Magic bytes of unsupported files that are likely given by mistake, with a description.
const KNOWN: [(&[u8], &str); 9] = [
    (b"BZh", "compressed with bzip2: unpack it with `bzip2 -d` first"),
    (b"\x7fELF", "a program, not a profile of one: record it with `plumb record -- CMD`"),
    (b"JiTD", "a jitdump, which belongs to a profile but is none"),
    (b"<!", PAGE),
    (b"<?xml", PAGE),
    (b"<html", PAGE),
    (b"<svg", PAGE),
    (b"\x89PNG", "a picture"),
    (b"#!", "a script: record it with `plumb record -- CMD`"),
];

const PAGE: &str = "an HTML or SVG page";

impl FileKind {
    /// Recognises a file by its first bytes.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            return FileKind::Recording;
        }
        if start.starts_with(UNFINISHED) {
            return FileKind::Unfinished;
        }
        if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            return FileKind::PerfData;
        }
        if start.is_empty() {
            return FileKind::Other("an empty file");
        }
        if crate::foreign::compression(start).is_some() {
            return FileKind::Packed;
        }
        if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
            return FileKind::Other(what);
        }
        FileKind::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(FileKind::of(b"PK\x03\x04\x0a\0"), FileKind::Recording);
        assert_eq!(FileKind::of(b"plumb journal 1\ngrowth"), FileKind::Unfinished);
        assert_eq!(FileKind::of(b"PERFILE2h\0\0\0"), FileKind::PerfData);
        assert_eq!(FileKind::of(b"2ELIFREP\0\0\0"), FileKind::PerfData);
        for (start, word) in [(&b""[..], "empty"), (b"BZh9", "bzip2"), (b"\x7fELF\x02", "program")] {
            let FileKind::Other(what) = FileKind::of(start) else { panic!("{start:?}") };
            assert!(what.contains(word), "{start:?}: {what}");
        }
        for start in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd\x04", b"\xfd7zXZ\0\0"] {
            assert_eq!(FileKind::of(start), FileKind::Packed, "{start:?}");
        }
        for start in [&b"  {\"a\": 1}"[..], b"main;foo 12\n", b"<T as X>::f 1\n", b"\0\x01\x02"] {
            assert_eq!(FileKind::of(start), FileKind::Foreign, "{start:?}");
        }
    }
}
