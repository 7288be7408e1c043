//! Statements of libjvm.so on its own structures, for debuggers: tables of fields, types and constants (vmStructs.hpp).
//!
//! The tables are filled in as the library is loaded, so they are read from the process.

use std::collections::HashMap;

use crate::image::{Image, Wanted};
use crate::memory::word_in;
use crate::{Memory, Unreadable};

/// Most entries of a table.
const MAX_ENTRIES: usize = 1 << 14;
/// Entries that are read at once.
const BATCH: usize = 64;
/// Largest distance of two entries, in bytes.
const MAX_STRIDE: u64 = 256;
/// Longest text, in bytes.
const MAX_TEXT: usize = 128;

const FIELDS: &str = "gHotSpotVMStructs";
const FIELD_TYPE: &str = "gHotSpotVMStructEntryTypeNameOffset";
const FIELD_NAME: &str = "gHotSpotVMStructEntryFieldNameOffset";
const FIELD_KIND: &str = "gHotSpotVMStructEntryTypeStringOffset";
const FIELD_OFFSET: &str = "gHotSpotVMStructEntryOffsetOffset";
const FIELD_ADDRESS: &str = "gHotSpotVMStructEntryAddressOffset";
const FIELD_STRIDE: &str = "gHotSpotVMStructEntryArrayStride";
const TYPES: &str = "gHotSpotVMTypes";
const TYPE_NAME: &str = "gHotSpotVMTypeEntryTypeNameOffset";
const TYPE_SIZE: &str = "gHotSpotVMTypeEntrySizeOffset";
const TYPE_STRIDE: &str = "gHotSpotVMTypeEntryArrayStride";

const fn address(name: &'static str) -> Wanted {
    Wanted { name, bytes: 0 }
}

/// Symbols to search for in a file.
pub(super) const SYMBOLS: &[Wanted] = &[
    address(FIELDS),
    address(FIELD_TYPE),
    address(FIELD_NAME),
    address(FIELD_KIND),
    address(FIELD_OFFSET),
    address(FIELD_ADDRESS),
    address(FIELD_STRIDE),
    address(TYPES),
    address(TYPE_NAME),
    address(TYPE_SIZE),
    address(TYPE_STRIDE),
];

/// Stated addresses of the tables.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    fields: Table<5>,
    types: Table<2>,
}

/// A table: the address of a pointer to it, and of the numbers that describe an entry.
#[derive(Clone, Debug)]
struct Table<const N: usize> {
    start: u64,
    stride: u64,
    members: [u64; N],
}

impl Tables {
    /// The tables in a file, if it has them.
    pub(super) fn of(image: &Image) -> Option<Tables> {
        let at = |name| image.address(name);
        Some(Tables {
            fields: Table {
                start: at(FIELDS)?,
                stride: at(FIELD_STRIDE)?,
                members: [
                    at(FIELD_TYPE)?,
                    at(FIELD_NAME)?,
                    at(FIELD_KIND)?,
                    at(FIELD_OFFSET)?,
                    at(FIELD_ADDRESS)?,
                ],
            },
            types: Table {
                start: at(TYPES)?,
                stride: at(TYPE_STRIDE)?,
                members: [at(TYPE_NAME)?, at(TYPE_SIZE)?],
            },
        })
    }

    /// A stated address of the library.
    pub(super) fn address(&self) -> u64 {
        self.fields.start
    }
}

/// A field of a structure, or a static variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Offset in the structure.
    pub(super) offset: u32,
    /// Bytes that it has.
    pub(super) size: u32,
    /// Address, if it is static.
    address: u64,
}

impl Field {
    /// The value in a structure at an address.
    pub(super) fn read(self, memory: &dyn Memory, at: u64) -> Result<u64, Unreadable> {
        let word = memory.word(at.wrapping_add(self.offset.into()))?;
        Ok(Field { offset: 0, ..self }.value(&word.to_le_bytes()))
    }

    /// The value in the bytes of a structure; 0 beyond their end.
    pub(super) fn value(self, bytes: &[u8]) -> u64 {
        let unused = 64 - 8 * self.size.clamp(1, 8);
        let word = word_in(bytes, self.offset);
        // The last field of the bytes may be shorter than a word.
        let tail = bytes.get(self.offset as usize..).unwrap_or_default();
        let word = if tail.len() >= 8 {
            word
        } else {
            tail.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        word << unused >> unused
    }
}

/// The statements of a process.
#[derive(Debug)]
pub(super) struct Statements {
    fields: HashMap<(String, String), Field>,
    sizes: HashMap<String, u32>,
}

impl Statements {
    /// Reads the tables of a process. Fails if they are not filled in yet.
    pub(super) fn read(memory: &dyn Memory, bias: u64, tables: &Tables) -> Result<Statements, Unreadable> {
        let mut fields = HashMap::new();
        entries(memory, bias, &tables.fields, |[kind, name, value, offset, address]| {
            let size = size_of(&text(memory, value)?);
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            fields.insert((text(memory, kind)?, text(memory, name)?), Field { offset, size, address });
            Ok(())
        })?;
        let mut sizes = HashMap::new();
        entries(memory, bias, &tables.types, |[name, size]| {
            sizes.insert(text(memory, name)?, u32::try_from(size).unwrap_or(u32::MAX));
            Ok(())
        })?;
        Ok(Statements { fields, sizes })
    }

    /// Statements of a test, one a line: structure, field, type, offset, whether it is static; or structure and size.
    #[cfg(test)]
    pub(super) fn of_text(stated: &str) -> Statements {
        let mut all = Statements { fields: HashMap::new(), sizes: HashMap::new() };
        for line in stated.lines() {
            match line.split('|').collect::<Vec<_>>()[..] {
                [structure, name, kind, offset, is_static] => {
                    let field = Field {
                        offset: offset.parse().expect("it is a number"),
                        size: size_of(kind),
                        address: u64::from(is_static == "1"),
                    };
                    all.fields.insert((structure.to_owned(), name.to_owned()), field);
                }
                [structure, size] => {
                    all.sizes.insert(structure.to_owned(), size.parse().expect("it is a number"));
                }
                _ => panic!("{line}"),
            }
        }
        all
    }

    /// A field, if there is one. Larger offsets than any structure has are none.
    pub(super) fn field(&self, structure: &str, name: &str) -> Option<Field> {
        const MAX_OFFSET: u32 = 1 << 16;
        let field = self.fields.get(&(structure.to_owned(), name.to_owned()))?;
        (field.offset < MAX_OFFSET).then_some(*field)
    }

    /// Offset of a field.
    pub(super) fn offset(&self, structure: &str, name: &str) -> Option<u32> {
        self.field(structure, name).map(|field| field.offset)
    }

    /// Address of a static variable.
    pub(super) fn variable(&self, structure: &str, name: &str) -> Option<u64> {
        self.field(structure, name).map(|field| field.address).filter(|&address| address != 0)
    }

    /// Size of a structure, in bytes. Structures that are larger than any are none.
    pub(super) fn size(&self, structure: &str) -> Option<u32> {
        const MAX_SIZE: u32 = 1 << 12;
        self.sizes.get(structure).copied().filter(|&size| size <= MAX_SIZE)
    }
}

/// Passes on the members of the entries of a table. The last one has a null pointer as its first member.
fn entries<const N: usize>(
    memory: &dyn Memory,
    bias: u64,
    table: &Table<N>,
    mut entry: impl FnMut([u64; N]) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    let word = |stated: u64| memory.word(stated.wrapping_add(bias));
    let (start, stride) = (word(table.start)?, word(table.stride)?);
    let mut members = [0; N];
    for (member, &at) in members.iter_mut().zip(&table.members) {
        *member = u32::try_from(word(at)?).unwrap_or(u32::MAX);
    }
    if start == 0 || !(16..=MAX_STRIDE).contains(&stride) {
        return Err(Unreadable(table.start));
    }
    let mut bytes = vec![0; BATCH * stride as usize];
    for index in 0..MAX_ENTRIES / BATCH {
        let at = start.wrapping_add(index as u64 * bytes.len() as u64);
        if !memory.read(at, &mut bytes) {
            return Err(Unreadable(at));
        }
        for bytes in bytes.chunks(stride as usize) {
            let values = members.map(|member| word_in(bytes, member));
            if values.first() == Some(&0) {
                return Ok(());
            }
            entry(values)?;
        }
    }
    Err(Unreadable(start))
}

/// Reads a text that ends with a zero; a null pointer is an empty one.
pub(super) fn text(memory: &dyn Memory, at: u64) -> Result<String, Unreadable> {
    let mut bytes = [0; MAX_TEXT];
    // Less may be mapped.
    let is_read = |bytes: &mut [u8]| memory.read(at, bytes);
    if at == 0 {
        return Ok(String::new());
    }
    if !is_read(&mut bytes) && !bytes.get_mut(..16).is_some_and(is_read) {
        return Err(Unreadable(at));
    }
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned())
}

/// Bytes of a field of a type.
fn size_of(kind: &str) -> u32 {
    match kind {
        "u1" | "bool" | "jbyte" | "signed char" | "volatile signed char" => 1,
        "u2" | "jushort" | "short" | "int16_t" | "uint16_t" | "unsigned short" => 2,
        "int" | "jint" | "juint" | "u4" | "uint32_t" | "unsigned int" | "CompLevel" => 4,
        _ => 8,
    }
}
