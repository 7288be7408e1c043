//! A cursor over call-frame instructions. What is wrong with them does not matter here: the decoder of single rows will
//! say it.

/// The longest LEB128 number that is read, as in the decoder of single rows.
const MAX_LEB: u32 = 16;

/// The bytes that are left.
#[derive(Clone, Copy)]
pub(super) struct Code<'a>(pub(super) &'a [u8]);

impl Code<'_> {
    #[inline(always)]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    #[inline(always)]
    pub(super) fn uleb(&mut self) -> Option<u64> {
        match self.0.split_first()? {
            (&byte, rest) if byte < 0x80 => {
                self.0 = rest;
                Some(byte.into())
            }
            _ => self.long().map(|(value, _)| value),
        }
    }

    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (value, bits) = self.long()?;
        let sign = bits < 64 && value >> (bits - 1) & 1 != 0;
        Some(if sign { (value | u64::MAX << bits) as i64 } else { value as i64 })
    }

    /// A number and how many bits were written.
    #[inline(never)]
    fn long(&mut self) -> Option<(u64, u32)> {
        let mut value = 0;
        for shift in (0..7 * MAX_LEB).step_by(7) {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Some((value, shift + 7));
            }
        }
        None
    }
}
