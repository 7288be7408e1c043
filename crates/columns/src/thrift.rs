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
pub(crate) struct Walker<'a> {
    pub rest: &'a [u8],
}

/// A field of a structure.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    Integer(i64),
    Struct,
    /// Any other type.
    Other,
}

/// Called with each field of the outermost structure (outer field 0) and of the structures in it: the field of the outer
/// structure, its own field, its value. `None` rejects the field.
pub(crate) type Visitor<'v> = dyn FnMut(i16, i16, Value) -> Option<()> + 'v;

impl Walker<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// Reads a variable-length integer; `None` if it is incomplete or has more than ten bytes.
    pub(crate) fn varint(&mut self) -> Option<u64> {
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

    /// Reads a variable-length integer whose lowest bit is its sign.
    pub(crate) fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Returns the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    /// Walks a structure. `None` if it is incomplete, claims too much, or `visit` rejected a field.
    pub(crate) fn structure(&mut self, visit: &mut Visitor<'_>) -> Option<()> {
        self.fields(Some(0), DEPTH, visit)
    }

    /// `outer`: `None` in structures too deep for the visitor.
    fn fields(&mut self, outer: Option<i16>, depth: u8, visit: &mut Visitor<'_>) -> Option<()> {
        let mut field = 0_i16;
        loop {
            let head = self.byte()?;
            if head & 15 == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => self.integer()?.try_into().ok()?,
                step => field.checked_add(step.into())?,
            };
            let value = match head & 15 {
                I16..=I64 => Value::Integer(self.integer()?),
                STRUCT => Value::Struct,
                _ => Value::Other,
            };
            if let Some(outer) = outer {
                visit(outer, field, value)?;
            }
            match head & 15 {
                BOOL_TRUE | BOOL_FALSE | I16..=I64 => {}
                I8 => drop(self.take(1)?),
                DOUBLE => drop(self.take(8)?),
                BINARY => {
                    let length = self.varint()?;
                    self.take(usize::try_from(length).ok()?)?;
                }
                STRUCT => self.fields(
                    outer.filter(|&outer| outer == 0).map(|_| field),
                    depth.checked_sub(1)?,
                    visit,
                )?,
                _ => return None,
            }
        }
    }
}
