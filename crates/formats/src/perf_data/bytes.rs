//! Reads numbers from byte slices in the byte order of the file; reading beyond the end returns `None`, and never panics.

use linux_perf_event_reader::Endianness;

/// A slice that is consumed from its front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    endian: Endianness,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8], endian: Endianness) -> Self {
        Bytes { rest: bytes, endian }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes bytes as [`Bytes::take`] does, for further reading.
    pub(super) fn split(&mut self, count: usize) -> Option<Bytes<'a>> {
        let endian = self.endian;
        self.take(count).map(|taken| Bytes::new(taken, endian))
    }

    pub(super) fn skip(&mut self, count: usize) -> Option<()> {
        self.take(count).map(|_| ())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        let bytes = self.array()?;
        Some(match self.endian {
            Endianness::LittleEndian => u16::from_le_bytes(bytes),
            Endianness::BigEndian => u16::from_be_bytes(bytes),
        })
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let bytes = self.array()?;
        Some(match self.endian {
            Endianness::LittleEndian => u32::from_le_bytes(bytes),
            Endianness::BigEndian => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let bytes = self.array()?;
        Some(match self.endian {
            Endianness::LittleEndian => u64::from_le_bytes(bytes),
            Endianness::BigEndian => u64::from_be_bytes(bytes),
        })
    }

    /// Reads a length as perf stores it before strings and arrays.
    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    /// Reads a string of a header feature: its length with padding, then its bytes up to a NUL.
    pub(super) fn string(&mut self) -> Option<String> {
        let length = self.length()?;
        Some(text(self.take(length)?))
    }
}

/// Returns the text before the first NUL.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
