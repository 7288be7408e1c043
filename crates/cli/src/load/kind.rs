//! Recognises file formats by their first bytes.

use plumb_formats::native::UNFINISHED;

/// Number of bytes that [`Kind::of`] needs, if the file has as many.
pub const BYTES: u64 = 512;

/// A recognised kind of file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
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

impl Kind {
    /// Recognises a file by its first bytes.
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            return Kind::Recording;
        }
        if start.starts_with(UNFINISHED) {
            return Kind::Unfinished;
        }
        if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
            return Kind::PerfData;
        }
        if start.is_empty() {
            return Kind::Other("an empty file");
        }
        if plumb_formats::foreign::compression(start).is_some() {
            return Kind::Packed;
        }
        if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Kind::Other(what);
        }
        Kind::Foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(Kind::of(b"PK\x03\x04\x0a\0"), Kind::Recording);
        assert_eq!(Kind::of(b"plumb journal 1\ngrowth"), Kind::Unfinished);
        assert_eq!(Kind::of(b"PERFILE2h\0\0\0"), Kind::PerfData);
        assert_eq!(Kind::of(b"2ELIFREP\0\0\0"), Kind::PerfData);
        for (start, word) in [(&b""[..], "empty"), (b"BZh9", "bzip2"), (b"\x7fELF\x02", "program")] {
            let Kind::Other(what) = Kind::of(start) else { panic!("{start:?}") };
            assert!(what.contains(word), "{start:?}: {what}");
        }
        for start in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd\x04", b"\xfd7zXZ\0\0"] {
            assert_eq!(Kind::of(start), Kind::Packed, "{start:?}");
        }
        for start in [&b"  {\"a\": 1}"[..], b"main;foo 12\n", b"<T as X>::f 1\n", b"\0\x01\x02"] {
            assert_eq!(Kind::of(start), Kind::Foreign, "{start:?}");
        }
    }
}
