//! Numbers in HotSpot's compressed streams (UNSIGNED5): a byte below 192 ends a number, others have more bytes behind them, at most five in all.

/// Values of a byte that has others behind it, as a number of bits.
const HIGH_BITS: u32 = 6;
/// Most bytes of a number.
const MAX_BYTES: u32 = 5;

/// A stream of numbers.
pub(super) struct Numbers<'b> {
    bytes: &'b [u8],
    /// Number of the lowest values of a byte that are not used: since Java 20 the zero is not.
    excluded: u32,
}

impl<'b> Numbers<'b> {
    pub(super) fn new(bytes: &'b [u8], excludes_zero: bool) -> Numbers<'b> {
        Numbers { bytes, excluded: excludes_zero.into() }
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> Option<u32> {
        let low = 256 - (1 << HIGH_BITS);
        let mut sum = 0_u32;
        for index in 0..MAX_BYTES {
            let byte = u32::from(self.byte()?);
            let digit = byte.checked_sub(self.excluded)?;
            sum = sum.wrapping_add(digit.wrapping_shl(HIGH_BITS * index));
            if byte < low {
                break;
            }
        }
        Some(sum)
    }

    /// The next number with a sign, which is its lowest bit.
    pub(super) fn signed(&mut self) -> Option<i32> {
        let number = self.next()?;
        Some((number >> 1) as i32 ^ -((number & 1) as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_five_bytes_at_most() {
        // Up to Java 19: 191; 192 + 64 * 1; the largest number.
        let mut numbers = Numbers::new(&[191, 192, 1, 0xff, 0xff, 0xff, 0xff, 252, 7], false);
        assert_eq!([numbers.next(), numbers.next()], [Some(191), Some(256)]);
        assert!(numbers.next().is_some());
        assert_eq!([numbers.next(), numbers.next()], [Some(7), None]);
        // Since then: each byte is one more.
        let mut numbers = Numbers::new(&[1, 191, 192, 1, 0], true);
        assert_eq!([numbers.next(), numbers.next(), numbers.next()], [Some(0), Some(190), Some(191)]);
        assert_eq!(numbers.next(), None, "a zero is no number");
    }
}
