//! Encoded pointers (`DW_EH_PE_*`, LSB 5.0 core §10.5).

use super::error::{CfiError, CfiErrorKind};
use super::reader::Reader;

/// A pointer encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Encoding(pub(crate) u8);

/// Stated addresses that encoded pointers may be relative to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases {
    /// Size of an absolute pointer in bytes.
    pub(crate) word: u8,
    /// Address of the section that holds the pointer.
    pub(crate) section: u64,
    pub(crate) text: Option<u64>,
    pub(crate) data: Option<u64>,
    /// Start of the function that the FDE describes.
    pub(crate) function: Option<u64>,
}

impl Encoding {
    /// An absolute word.
    pub(crate) const ABSOLUTE: Encoding = Encoding(0);
    /// No pointer.
    pub(crate) const OMIT: Encoding = Encoding(0xff);
    /// Four signed bytes relative to their own address: what compilers write into `.eh_frame`.
    pub(crate) const PC_REL_SDATA4: Encoding = Encoding(0x1b);
    /// Four signed bytes relative to the section's base: what linkers write into `.eh_frame_hdr`.
    pub(crate) const DATA_REL_SDATA4: Encoding = Encoding(0x3b);

    /// Returns the same format without a base: the encoding of the length of an FDE's range.
    pub(crate) fn format_only(self) -> Encoding {
        Encoding(self.0 & 0x0f)
    }

    /// Returns the size of a pointer in bytes; `None` if it varies or the format is unknown.
    pub(crate) fn fixed_size(self, bases: &Bases) -> Option<usize> {
        match self.0 & 0x0f {
            0x00 | 0x08 => Some(bases.word.into()),
            0x04 | 0x0c => Some(8),
            0x02 | 0x0a => Some(2),
            0x03 | 0x0b => Some(4),
            _ => None,
        }
    }

    /// Reads a pointer, wrapping like addresses. Rejects indirect pointers: their value is in memory.
    pub(crate) fn read(self, reader: &mut Reader<'_>, bases: &Bases) -> Result<u64, CfiError> {
        let unknown = reader.error(CfiErrorKind::UnknownPointerEncoding(self.0));
        if self == Encoding::OMIT || self.0 & 0x80 != 0 {
            return Err(unknown);
        }
        if self.0 == 0x50 {
            self.align(reader, bases)?;
            return word(reader, bases);
        }
        let base = match self.0 & 0x70 {
            0x00 => 0,
            0x10 => bases.section.wrapping_add(reader.position() as u64),
            0x20 => bases.text.ok_or(unknown)?,
            0x30 => bases.data.ok_or(unknown)?,
            0x40 => bases.function.ok_or(unknown)?,
            _ => return Err(unknown),
        };
        let pointer = base.wrapping_add(self.read_format(reader, bases)?);
        Ok(if bases.word == 4 { u64::from(pointer as u32) } else { pointer })
    }

    /// Skips a pointer whose value does not matter (personality, language-specific data).
    pub(crate) fn skip(self, reader: &mut Reader<'_>, bases: &Bases) -> Result<(), CfiError> {
        if self == Encoding::OMIT {
            return Ok(());
        }
        if self.0 & 0x7f == 0x50 {
            self.align(reader, bases)?;
            return reader.skip(bases.word.into());
        }
        self.read_format(reader, bases).map(|_| ())
    }

    fn align(self, reader: &mut Reader<'_>, bases: &Bases) -> Result<(), CfiError> {
        let address = bases.section.wrapping_add(reader.position() as u64);
        reader.skip(address.wrapping_neg() & (u64::from(bases.word) - 1))
    }

    fn read_format(self, reader: &mut Reader<'_>, bases: &Bases) -> Result<u64, CfiError> {
        Ok(match self.0 & 0x0f {
            0x00 | 0x08 => word(reader, bases)?,
            0x04 | 0x0c => reader.u64()?,
            0x01 => reader.uleb()?,
            0x02 => u64::from(reader.u16()?),
            0x03 => u64::from(reader.u32()?),
            0x09 => reader.sleb()? as u64,
            0x0a => i64::from(reader.u16()? as i16) as u64,
            0x0b => i64::from(reader.u32()? as i32) as u64,
            _ => return Err(reader.error(CfiErrorKind::UnknownPointerEncoding(self.0))),
        })
    }
}

/// Reads a pointer of the architecture's size.
fn word(reader: &mut Reader<'_>, bases: &Bases) -> Result<u64, CfiError> {
    if bases.word == 4 { reader.u32().map(u64::from) } else { reader.u64() }
}
