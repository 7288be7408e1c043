//! A position in bytes that advances as numbers are read.
//!
//! Invariant: nothing beyond the end is read; `None` means that too few bytes are left.
//! Only data read millions of times goes through this type; gimli reads everything else.

/// Little-endian bytes and a read position.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Moves to another position; beyond the end there is nothing to read.
    pub fn go(&mut self, at: usize) {
        self.at = at;
    }

    /// Whether everything has been read.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Skips `count` bytes; if there are fewer, nothing more can be read.
    #[inline]
    pub fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// Reads a byte.
    #[inline]
    pub fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads a number of `size` bytes, at most 8.
    #[inline]
    pub fn number(&mut self, size: usize) -> Option<u64> {
        let rest = self.bytes.get(self.at..)?;
        let value = match (rest.first_chunk::<8>(), size) {
            (Some(word), 1..8) => u64::from_le_bytes(*word) & ((1 << (8 * size)) - 1),
            (Some(word), 8) => u64::from_le_bytes(*word),
            _ => {
                let mut word = [0; 8];
                word.get_mut(..size)?.copy_from_slice(rest.get(..size)?);
                u64::from_le_bytes(word)
            }
        };
        self.at += size;
        Some(value)
    }

    /// Reads an unsigned LEB128 number; bits beyond 64 are dropped.
    #[inline]
    pub fn uleb(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    /// Reads a signed LEB128 number; bits beyond 64 are dropped.
    #[inline]
    pub fn sleb(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte < 0x80 {
                let is_negative = byte & 0x40 != 0 && shift < 64;
                return Some(if is_negative { value | (-1_i64 << shift) } else { value });
            }
        }
    }

    /// Skips a LEB128 number.
    #[inline]
    pub fn skip_leb(&mut self) -> Option<()> {
        while self.u8()? >= 0x80 {}
        Some(())
    }

    /// Skips NUL-terminated text.
    pub fn skip_text(&mut self) -> Option<()> {
        let length = self.bytes.get(self.at..)?.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;

    #[test]
    fn numbers_are_those_of_the_dwarf_standard() {
        // DWARF 5, 7.6: figures 22 and 23.
        for (bytes, value) in [(&[2][..], 2), (&[0x7f], 127), (&[0x80, 1], 128), (&[0xb9, 0x64], 12857)] {
            assert_eq!(Cursor::new(bytes).uleb(), Some(value));
        }
        for (bytes, value) in
            [(&[0x7e][..], -2), (&[0xff, 0], 127), (&[0x81, 0x7f], -127), (&[0x80, 0x7f], -128), (&[2], 2)]
        {
            assert_eq!(Cursor::new(bytes).sleb(), Some(value));
        }
        let most = [[0x80; 9].as_slice(), &[0x7f]].concat();
        assert_eq!(Cursor::new(&most).sleb(), Some(i64::MIN));
        assert_eq!(Cursor::new(&[0x80; 30]).uleb(), None);
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let bytes = [1, 2, 3];
        let mut cursor = Cursor::new(&bytes);
        assert_eq!(cursor.number(4), None);
        assert_eq!(cursor.number(3), Some(0x0003_0201));
        assert!(cursor.is_at_end() && cursor.u8().is_none() && cursor.skip_text().is_none());
        cursor.skip(usize::MAX);
        assert!(cursor.is_at_end() && cursor.number(1).is_none());
        assert_eq!(Cursor::new(&[1; 9]).number(9), None);
    }
}
