//! The reader types with which gimli sees the bytes of a file.

use gimli::{AttributeValue, EndianSlice, LittleEndian};

/// Bytes of a section. Big-endian machines are not supported.
pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;
/// A parsed unit.
pub(crate) type Unit<'a> = gimli::Unit<Bytes<'a>>;
/// The value of an attribute.
pub(crate) type Value<'a> = AttributeValue<Bytes<'a>>;
