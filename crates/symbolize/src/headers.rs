//! Additions of symbolization to the headers of an ELF file: the form of numbers, and the compression of sections.
//!
//! Elsewhere: the headers themselves (`plumb_process::elf`), the contents of sections.

use object::elf;
use object::read::CompressionFormat;
use object::read::elf::CompressionHeader as _;
use object::{Endianness, pod};

pub(crate) use plumb_process::elf::{
    ElfCompression as Compression, ElfSection as Section, ElfSegment as Segment,
};

/// Byte order and word size of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form {
    /// Byte order.
    pub endian: Endianness,
    /// Whether addresses have 64 bits.
    pub is_64: bool,
}

/// Usual ratio of debug information's decompressed to its compressed size.
pub(crate) const INFLATED: u64 = 3;

/// Returns format, decompressed size and data of a section with `SHF_COMPRESSED`.
pub(crate) fn compression_header(raw: &[u8], form: Form) -> Option<(CompressionFormat, u64, &[u8])> {
    let (kind, size, data) = if form.is_64 {
        let (header, data) = pod::from_bytes::<elf::CompressionHeader64<Endianness>>(raw).ok()?;
        (header.ch_type(form.endian), header.ch_size(form.endian), data)
    } else {
        let (header, data) = pod::from_bytes::<elf::CompressionHeader32<Endianness>>(raw).ok()?;
        (header.ch_type(form.endian), header.ch_size(form.endian).into(), data)
    };
    let format = match kind {
        elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
        elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
        _ => return None,
    };
    Some((format, size, data))
}

/// Returns format, decompressed size and data of a `.zdebug_*` section.
pub(crate) fn old_gnu_header(raw: &[u8]) -> Option<(CompressionFormat, u64, &[u8])> {
    let (size, data) = raw.strip_prefix(b"ZLIB")?.split_first_chunk::<8>()?;
    Some((CompressionFormat::Zlib, u64::from_be_bytes(*size), data))
}
