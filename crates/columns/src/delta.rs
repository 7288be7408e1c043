//! Measures the values of a DELTA_BYTE_ARRAY page without decoding them.
//!
//! The page has two streams of lengths, DELTA_BINARY_PACKED, and then the bytes of all suffixes. A value is a prefix of the value before and its
//! suffix, so a page of a few bytes may hold many long values. The streams are read as the decoder reads them, or rejected
//! (<https://parquet.apache.org/docs/file-format/data-pages/encodings/>).

use crate::thrift::Walker;

/// Sizes of blocks are multiples of this number of values, sizes of their parts of 32.
const BLOCK: u64 = 128;
/// Largest block accepted; plumb's have 128 values.
const LARGEST_BLOCK: u64 = 1 << 16;

/// Returns the size in bytes of all values of a page, which must be `values`, and whether the page is well-formed otherwise.
pub(crate) fn decoded_bytes(page: &[u8], values: u64) -> Option<u64> {
    let mut prefixes = Lengths::new(page, values)?;
    let mut suffixes = Lengths::new(prefixes.after()?, values)?;
    let mut left = suffixes.after()?.len();
    let (mut total, mut before) = (0_u64, 0_usize);
    for _ in 0..values {
        let (prefix, suffix) = (prefixes.next()?, suffixes.next()?);
        left = left.checked_sub(suffix)?;
        if prefix > before {
            return None;
        }
        before = prefix + suffix;
        total = total.saturating_add(before as u64);
    }
    Some(total)
}

/// A stream of lengths.
#[derive(Clone)]
struct Lengths<'p> {
    walker: &'p [u8],
    per_part: usize,
    parts: usize,
    /// Values not yet returned.
    left: usize,
    is_first: bool,
    last: i32,
    block: Block<'p>,
    part: Part<'p>,
}

/// A block with the parts that were not begun.
#[derive(Clone, Default)]
struct Block<'p> {
    least: i32,
    widths: &'p [u8],
}

/// Packed values of a part of a block.
#[derive(Clone, Default)]
struct Part<'p> {
    bytes: &'p [u8],
    width: usize,
    bit: usize,
    left: usize,
}

impl<'p> Lengths<'p> {
    /// Reads the header of a stream that has `values` values.
    fn new(bytes: &'p [u8], values: u64) -> Option<Self> {
        let mut walker = Walker { rest: bytes };
        let (block, parts) = (walker.varint()?, walker.varint()?);
        let is_sane =
            block <= LARGEST_BLOCK && block.is_multiple_of(BLOCK) && block.checked_rem(parts) == Some(0);
        let per_part = block.checked_div(parts)?;
        if !is_sane || per_part == 0 || !per_part.is_multiple_of(32) || walker.varint()? != values {
            return None;
        }
        let last = walker.integer()?.try_into().ok()?;
        Some(Self {
            walker: walker.rest,
            per_part: usize::try_from(per_part).ok()?,
            parts: usize::try_from(parts).ok()?,
            left: usize::try_from(values).ok()?,
            is_first: true,
            last,
            block: Block::default(),
            part: Part::default(),
        })
    }

    /// The bytes after the stream.
    fn after(&self) -> Option<&'p [u8]> {
        let mut rest = self.clone();
        // The first value is in the header.
        rest.left = rest.left.saturating_sub(1);
        while rest.left > 0 {
            rest.next_block()?;
            while !rest.block.widths.is_empty() {
                rest.next_part()?;
                rest.left = rest.left.saturating_sub(rest.per_part);
            }
        }
        Some(rest.walker)
    }

    fn next_block(&mut self) -> Option<()> {
        let mut walker = Walker { rest: self.walker };
        let least = walker.integer()?.try_into().ok()?;
        let (widths, rest) = walker.rest.split_at_checked(self.parts)?;
        self.block = Block { least, widths };
        self.walker = rest;
        Some(())
    }

    /// Begins the next part of the block. Of parts after the last value the width has no meaning.
    fn next_part(&mut self) -> Option<()> {
        let (&width, widths) = self.block.widths.split_first()?;
        self.block.widths = widths;
        let width = if self.left == 0 { 0 } else { usize::from(width) };
        if width > 32 {
            return None;
        }
        let (bytes, rest) = self.walker.split_at_checked(width * self.per_part / 8)?;
        self.walker = rest;
        self.part = Part { bytes, width, bit: 0, left: self.per_part };
        Some(())
    }

    /// The next length; `None` if there is none, or a negative one.
    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        if !std::mem::take(&mut self.is_first) {
            if self.part.left == 0 {
                if self.block.widths.is_empty() {
                    self.next_block()?;
                }
                self.next_part()?;
            }
            let delta = self.part.next();
            self.last = self.last.wrapping_add(self.block.least).wrapping_add(delta);
        }
        self.left -= 1;
        self.last.try_into().ok()
    }
}

impl Part<'_> {
    #[inline]
    fn next(&mut self) -> i32 {
        self.left -= 1;
        if self.width == 0 {
            return 0;
        }
        let (byte, shift) = (self.bit / 8, self.bit % 8);
        let mut eight = [0; 8];
        match self.bytes.get(byte..byte + 8) {
            Some(whole) => eight.copy_from_slice(whole),
            None => {
                let last = self.bytes.get(byte..).unwrap_or_default();
                eight[..last.len()].copy_from_slice(last);
            }
        }
        self.bit += self.width;
        let mask = (1_u64 << self.width) - 1;
        ((u64::from_le_bytes(eight) >> shift) & mask) as u32 as i32
    }
}
