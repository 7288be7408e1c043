//! Code objects, strings and bytes.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::layout::{self, MAX_CODE_BYTES, PythonLayout};
use crate::memory::word_in;
use crate::{CodeId, Function, Memory, Unreadable};

/// Longest name that is read completely, in characters.
const MAX_TEXT: usize = 4096;
/// Bytes read at a time from a table that cannot be read at once.
const PIECE: usize = 32;
/// Most bytes of line tables.
const MAX_LINES: usize = 1 << 26;

/// Code objects by address, each read once.
#[derive(Default)]
pub(super) struct Codes {
    codes: HashMap<u64, Function>,
    /// Total bytes of their line tables.
    size: usize,
}

impl Codes {
    /// Returns the code object at an address.
    pub(super) fn get(
        &mut self,
        memory: &dyn Memory,
        layout: &PythonLayout,
        at: u64,
    ) -> Result<&Function, Unreadable> {
        match self.codes.entry(at) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                let code = code(memory, layout, at, None, MAX_LINES - self.size)?;
                self.size += code.lines.len();
                Ok(place.insert(code))
            }
        }
    }
}

/// Reads a single code object.
pub(super) fn function(
    memory: &dyn Memory,
    layout: &PythonLayout,
    id: CodeId,
) -> Result<Function, Unreadable> {
    code(memory, layout, id.at, Some(id.identity), MAX_LINES)
}

/// Reads a code object with a table of at most `most` bytes. Fails if it does not have the given identity.
fn code(
    memory: &dyn Memory,
    layout: &PythonLayout,
    at: u64,
    identity: Option<u32>,
    most: usize,
) -> Result<Function, Unreadable> {
    let offsets = &layout.code;
    let is_it = |bytes: &[u8; MAX_CODE_BYTES]| {
        identity.is_none_or(|identity| identity == layout::identity(bytes, &offsets.identity))
    };
    let bytes = head(memory, layout, at)?;
    if !is_it(&bytes) {
        return Err(Unreadable(at));
    }
    let instructions = u64::from(offsets.instructions);
    let first_traceable = match offsets.first_traceable {
        0 => 0,
        offset => instructions + 2 * (word_in(&bytes, offset) & 0xffff_ffff),
    };
    let (lines, has_all_lines) = table(memory, layout, word_in(&bytes, offsets.lines), most)?;
    let function = Function {
        name: text(memory, layout, word_in(&bytes, offsets.name))?,
        file: text(memory, layout, word_in(&bytes, offsets.file))?,
        first_line: word_in(&bytes, offsets.first_line) as u32,
        lines,
        line_table: offsets.line_table,
        has_all_lines,
        instructions,
        first_traceable,
        text: None,
    };
    // The code object may have been freed while it was read.
    if identity.is_some() && !is_it(&head(memory, layout, at)?) {
        return Err(Unreadable(at));
    }
    Ok(function)
}

/// Identity of the code object at an address.
pub(super) fn id(memory: &dyn Memory, layout: &PythonLayout, at: u64) -> Result<CodeId, Unreadable> {
    let identity = layout::identity(&head(memory, layout, at)?, &layout.code.identity);
    Ok(CodeId { at, identity })
}

/// Reads the needed part of a code object, followed by zeros.
fn head(memory: &dyn Memory, layout: &PythonLayout, at: u64) -> Result<[u8; MAX_CODE_BYTES], Unreadable> {
    let mut bytes = [0; MAX_CODE_BYTES];
    let part = bytes.get_mut(..layout.code.size as usize).ok_or(Unreadable(at))?;
    if memory.read(at, part) { Ok(bytes) } else { Err(Unreadable(at)) }
}

/// Reads a `bytes` object of at most `most` bytes, or its readable prefix. Returns whether it is complete.
fn table(
    memory: &dyn Memory,
    layout: &PythonLayout,
    at: u64,
    most: usize,
) -> Result<(Vec<u8>, bool), Unreadable> {
    let Ok(size) = memory.word(at.wrapping_add(layout.object.size.into())) else {
        return Ok((Vec::new(), false));
    };
    let size = usize::try_from(size).ok().filter(|&size| size <= most).ok_or(Unreadable(at))?;
    let mut bytes = vec![0; size];
    let at = at.wrapping_add(layout.object.bytes.into());
    if memory.read(at, &mut bytes) {
        return Ok((bytes, true));
    }
    let mut read = 0;
    for piece in bytes.chunks_exact_mut(PIECE) {
        if !memory.read(at.wrapping_add(read as u64), piece) {
            break;
        }
        read += PIECE;
    }
    bytes.truncate(read);
    Ok((bytes, false))
}

/// Reads a string of one, two or four bytes per character (PEP 393).
fn text(memory: &dyn Memory, layout: &PythonLayout, at: u64) -> Result<String, Unreadable> {
    let mut head = [0; 40];
    if !memory.read(at, &mut head) {
        return Err(Unreadable(at));
    }
    let length = usize::try_from(word_in(&head, layout.object.length)).unwrap_or(usize::MAX).min(MAX_TEXT);
    // Bits of `state`: 2 whether the string is interned, 3 the width of its characters, 1 whether they follow the header (compact), 1 whether
    // all are ASCII.
    let state = word_in(&head, layout.object.state) as u32;
    let (width, follow, ascii) = ((state >> 2 & 7) as usize, state >> 5 & 1 != 0, state >> 6 & 1 != 0);
    if !matches!(width, 1 | 2 | 4) || !follow {
        return Err(Unreadable(at));
    }
    let start = if ascii { layout.object.ascii } else { layout.object.wide };
    let mut bytes = vec![0; width * length];
    if !memory.read(at.wrapping_add(start.into()), &mut bytes) {
        return Err(Unreadable(at));
    }
    let character = |bytes: &[u8]| {
        let number = bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    Ok(bytes.chunks(width).map(character).collect())
}
