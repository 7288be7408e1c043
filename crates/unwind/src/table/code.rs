//! Cursor over call-frame instructions. Errors carry no reason here: the decoder of single rows reports it.

/// Maximum length of a LEB128 number in bytes, as in the decoder of single rows.
const MAX_LEB: u32 = 16;

/// The unread bytes. An iterator, because advancing it by a byte changes one register, where a slice would change
/// two.
#[derive(Clone)]
pub(super) struct Code<'a>(core::slice::Iter<'a, u8>);

impl<'a> Code<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Code(bytes.iter())
    }

    /// Returns the number of unread bytes.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.0.next().copied()
    }

    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.as_slice().split_first_chunk()?;
        self.0 = rest.iter();
        Some(*array)
    }

    pub(super) fn skip(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.as_slice().get(usize::try_from(count).ok()?..)?.iter();
        Some(())
    }

    #[inline(always)]
    pub(super) fn uleb(&mut self) -> Option<u64> {
        let low = self.byte()?;
        if low < 0x80 { Some(low.into()) } else { self.long(low).map(|(value, _)| value) }
    }

    pub(super) fn sleb(&mut self) -> Option<i64> {
        let low = self.byte()?;
        let (value, bits) = self.long(low)?;
        let sign = bits < 64 && value >> (bits - 1) & 1 != 0;
        Some(if sign { (value | u64::MAX << bits) as i64 } else { value as i64 })
    }

    /// Reads the rest of the number that begins with `byte`. Also returns the number of bits written.
    #[inline(never)]
    fn long(&mut self, mut byte: u8) -> Option<(u64, u32)> {
        let mut value = 0;
        for shift in (0..7 * MAX_LEB).step_by(7) {
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            if byte & 0x80 == 0 {
                return Some((value, shift + 7));
            }
            byte = self.byte()?;
        }
        None
    }
}
