//! Finds a function in `.eh_frame_hdr` in the format that all linkers write: sorted pairs of 32-bit offsets from its
//! address.
//!
//! Each step of the search is over a slice whose length is known at compile time, so a step is a comparison and a
//! choice between two halves. Tables that are too long for that get an ordinary binary search.

/// Offsets of a function's first byte and of its FDE.
type Pair = [u8; 8];

/// Returns the offset of the function's first byte.
#[inline(always)]
fn begin(&[a, b, c, d, ..]: &Pair) -> i32 {
    i32::from_le_bytes([a, b, c, d])
}

/// Returns the last pair that begins at or before `at`, which has the same base as the pairs.
#[inline]
pub(super) fn last_before(pairs: &[Pair], at: i32) -> Option<&Pair> {
    // Two slices with a power of two of pairs, one at either end, together cover all pairs.
    let length = 1_usize << pairs.len().checked_ilog2()?;
    let upper = pairs.get(pairs.len() - length..)?;
    let part = if begin(upper.first()?) <= at { upper } else { pairs.get(..length)? };
    let pair = in_part(part, at)?;
    (begin(pair) <= at).then_some(pair)
}

/// Defines one search step for each length, from two to the largest.
macro_rules! steps {
    ($($name:ident $length:literal $next:ident;)*) => {
        $(#[inline]
        fn $name(part: &[Pair; $length], at: i32) -> Option<&Pair> {
            let [low, high] = part.as_chunks::<{ $length / 2 }>().0 else { return None };
            let is_high = begin(high.first()?) <= at;
            $next(if is_high { high } else { low }, at)
        })*

        /// Searches a power of two of pairs.
        fn in_part(part: &[Pair], at: i32) -> Option<&Pair> {
            match part.len() {
                1 => part.first(),
                $($length => $name(part.first_chunk()?, at),)*
                _ => part.get(part.partition_point(|pair| begin(pair) <= at).saturating_sub(1)),
            }
        }
    };
}

steps! {
    of_2 2 of_1; of_4 4 of_2; of_8 8 of_4; of_16 16 of_8; of_32 32 of_16; of_64 64 of_32; of_128 128 of_64;
    of_256 256 of_128; of_512 512 of_256; of_1k 1024 of_512; of_2k 2048 of_1k; of_4k 4096 of_2k; of_8k 8192 of_4k;
    of_16k 16384 of_8k; of_32k 32768 of_16k; of_64k 65536 of_32k; of_128k 131072 of_64k; of_256k 262144 of_128k;
}

#[inline]
fn of_1(part: &[Pair; 1], _: i32) -> Option<&Pair> {
    part.first()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn finds_what_a_look_at_each_finds() {
        for count in (0..70).chain([127, 128, 129, 1000, 5000]) {
            let pairs: Vec<Pair> = (0..count).map(|number: i32| pair(number / 2 * 10 - 100)).collect();
            for at in -110..=10 * count {
                let expected = pairs.iter().rposition(|pair| begin(pair) <= at);
                let found = last_before(&pairs, at);
                assert_eq!(found.map(begin), expected.map(|index| begin(&pairs[index])), "{at} of {count}");
            }
        }
    }

    fn pair(begin: i32) -> Pair {
        let mut pair = [0; 8];
        pair[..4].copy_from_slice(&begin.to_le_bytes());
        pair
    }
}
