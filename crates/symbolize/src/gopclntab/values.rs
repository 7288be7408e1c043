//! A Go value table, which maps the instructions of a function to a value: file, line, or inlined call.
//!
//! Pairs of base-128 numbers (`step` in runtime/symtab.go): the change of the value, with the sign in bit 0, and the number of instructions
//! that it holds for. A change of 0 ends the table, except in the first pair.
//!
//! Invariant: the work is bounded by the length of the bytes, which may be hostile.

use gimli::{EndianSlice, LittleEndian, Reader};

/// The values in a function.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    /// End of each run relative to the function's start, sorted, and its value.
    runs: Vec<(u32, i32)>,
}

impl Values {
    /// Reads the table at the start of `bytes` for a function of `length` bytes; `None` if the bytes end early. Instruction
    /// sizes are multiples of `quantum` bytes.
    pub fn read(bytes: &[u8], quantum: u8, length: u32) -> Option<Self> {
        let mut runs: Vec<(u32, i32)> = Vec::new();
        let mut rest = EndianSlice::new(bytes, LittleEndian);
        let (mut end, mut value) = (0_u32, -1_i32);
        while end < length {
            let change = rest.read_uleb128_u32().ok()?;
            if change == 0 && !runs.is_empty() {
                break;
            }
            value = value.wrapping_add((change >> 1).cast_signed() ^ -(change & 1).cast_signed());
            end = end.saturating_add(rest.read_uleb128_u32().ok()?.saturating_mul(quantum.into()));
            runs.push((end, value));
        }
        Some(Self { runs })
    }

    /// Returns the ends of its runs, relative to the function's start.
    pub fn ends(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().map(|&(end, _)| end)
    }

    /// Returns the value at an offset from the function's start; `None` if it is negative.
    pub fn at(&self, offset: u32) -> Option<u32> {
        let run = self.runs.partition_point(|&(end, _)| end <= offset);
        u32::try_from(self.runs.get(run)?.1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_from_one_end_to_the_next() {
        // From -1 by +8 to 7 for 3 bytes, by -4 to 3 for 300, by -4 to a negative value for 1.
        let bytes = [16, 3, 7, 0xac, 0x02, 7, 1, 0, 9, 9];
        let values = Values::read(&bytes, 1, 1000).expect("it is whole");
        assert_eq!([0, 2, 3, 302].map(|at| values.at(at)), [Some(7), Some(7), Some(3), Some(3)]);
        assert_eq!([303, 304, u32::MAX].map(|at| values.at(at)), [None; 3], "-1, and behind the end");
        let values = Values::read(&bytes, 4, 12).expect("it ends where the function does");
        assert_eq!([11, 12].map(|at| values.at(at)), [Some(7), None]);
    }

    #[test]
    fn the_first_value_may_be_the_one_before_it() {
        let values = Values::read(&[0, 4, 2, 4, 0], 1, 100).expect("it is whole");
        assert_eq!([3, 4, 7].map(|at| values.at(at)), [None, Some(0), Some(0)]);
    }

    #[test]
    fn bytes_that_end_too_early_are_no_table() {
        for bytes in [&[][..], &[16], &[16, 3], &[16, 0x83], &[0xff; 64], &[2, 0, 2, 0, 2]] {
            assert_eq!(Values::read(bytes, 1, 1000), None, "{bytes:?}");
        }
        let large = [0xfe, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 1, 0];
        let values = Values::read(&large, 4, u32::MAX).expect("numbers don't overflow");
        assert_eq!(values.at(u32::MAX - 1), Some(i32::MAX as u32 - 1));
    }
}
