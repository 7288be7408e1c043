//! Walks Thrift's compact protocol, in which Parquet writes page headers, without storing anything.
//!
//! Rejects lists, sets and maps, which page headers do not have.

/// Nesting limit of structures, above that of any page header.
const DEPTH: u8 = 16;

/// Types of the compact protocol.
const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Bytes consumed from the front.
pub(super) struct Walker<'a> {
    pub rest: &'a [u8],
}

impl Walker<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Walks a structure. `seen` is called for each integer in it: the field of the outer structure (0 for
    /// the outermost), its own field, its value. `None` if the structure is incomplete or claims too much.
    pub(super) fn structure(&mut self, seen: &mut dyn FnMut(i64, i64, i64)) -> Option<()> {
        self.fields(0, DEPTH, seen)
    }

    fn fields(&mut self, outer: i64, depth: u8, seen: &mut dyn FnMut(i64, i64, i64)) -> Option<()> {
        let mut field = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.integer()?,
                step => field.checked_add(step.into())?,
            };
            match head & 15 {
                BOOL_TRUE | BOOL_FALSE => {}
                I8 => self.skip(1)?,
                I16..=I64 => seen(outer, field, self.integer()?),
                DOUBLE => self.skip(8)?,
                BINARY => {
                    let length = self.varint()?;
                    self.skip(length)?;
                }
                STRUCT => self.fields(field, depth.checked_sub(1)?, seen)?,
                _ => return None,
            }
        }
    }
}
