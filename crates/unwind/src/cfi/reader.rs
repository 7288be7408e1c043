//! Little-endian cursor over a section that never reads outside of it.

use super::error::{CfiError, CfiErrorKind, SectionKind};

/// Maximum length of a LEB128 number in bytes. Ten bytes hold 64 bits; assemblers may pad a little.
const MAX_LEB: u32 = 16;

/// A position in the bytes of a section.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    section: SectionKind,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], position: usize, section: SectionKind) -> Self {
        Reader { bytes, position, section }
    }

    /// Returns a reader that ends at `end`.
    pub(crate) fn up_to(self, end: usize) -> Self {
        Reader { bytes: self.bytes.get(..end).unwrap_or(self.bytes), ..self }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Returns the offset at which reading ends.
    pub(crate) fn end(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    pub(crate) fn error(&self, kind: CfiErrorKind) -> CfiError {
        CfiError { section: self.section, offset: self.position, kind }
    }

    pub(crate) fn skip(&mut self, count: u64) -> Result<(), CfiError> {
        let count = usize::try_from(count).map_err(|_| self.error(CfiErrorKind::Truncated))?;
        let position = self.position.checked_add(count).filter(|&p| p <= self.bytes.len());
        self.position = position.ok_or_else(|| self.error(CfiErrorKind::Truncated))?;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CfiError> {
        let array = self.bytes.get(self.position..).and_then(|rest| rest.first_chunk::<N>());
        let array = *array.ok_or_else(|| self.error(CfiErrorKind::Truncated))?;
        self.position += N;
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, CfiError> {
        let byte = *self.bytes.get(self.position).ok_or_else(|| self.error(CfiErrorKind::Truncated))?;
        self.position += 1;
        Ok(byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, CfiError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, CfiError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, CfiError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn uleb(&mut self) -> Result<u64, CfiError> {
        let mut value = 0u64;
        for shift in (0..7 * MAX_LEB).step_by(7) {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.error(CfiErrorKind::TooLarge))
    }

    pub(crate) fn sleb(&mut self) -> Result<i64, CfiError> {
        let mut value = 0i64;
        for shift in (0..7 * MAX_LEB).step_by(7) {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                if shift + 7 < 64 && byte & 0x40 != 0 {
                    value |= -1 << (shift + 7);
                }
                return Ok(value);
            }
        }
        Err(self.error(CfiErrorKind::TooLarge))
    }
}
