//! Functions and strings of PHP.

use super::layout::{self, CLASS_NAME, FUNCTION_CLASS, FUNCTION_NAME, MAX_FUNCTION_BYTES, PhpLayout};
use crate::function::identity;
use crate::python::LineTable;
use crate::{CodeId, Function, Memory, Unreadable};

/// The longest name that is read whole, in bytes.
const MAX_TEXT: usize = 4096;
/// Code of a file that is in no function.
const OUTSIDE: &str = "<main>";

type Head = [u8; MAX_FUNCTION_BYTES];

/// Reads a function, if it is the one that is meant.
pub(super) fn read(memory: &dyn Memory, layout: &PhpLayout, id: CodeId) -> Result<Function, Unreadable> {
    let bytes = head(memory, id.at)?;
    if identity_of(layout, &bytes) != id.identity {
        return Err(Unreadable(id.at));
    }
    let function = Function {
        name: name(memory, &bytes)?,
        file: text(memory, word(&bytes, layout.file))?,
        first_line: word(&bytes, layout.file + 8) as u32,
        lines: Vec::new(),
        line_table: LineTable::Direct,
        has_all_lines: true,
        instructions: 0,
        first_traceable: 0,
    };
    // It may have gone while it was read.
    match identity_of(layout, &head(memory, id.at)?) == id.identity {
        true => Ok(function),
        false => Err(Unreadable(id.at)),
    }
}

/// Tells the function at an address from others that may be there later.
pub(super) fn id(memory: &dyn Memory, layout: &PhpLayout, at: u64) -> Result<CodeId, Unreadable> {
    Ok(CodeId { at, identity: identity_of(layout, &head(memory, at)?) })
}

fn head(memory: &dyn Memory, at: u64) -> Result<Head, Unreadable> {
    let mut bytes = [0; MAX_FUNCTION_BYTES];
    if memory.read(at, &mut bytes) { Ok(bytes) } else { Err(Unreadable(at)) }
}

fn identity_of(layout: &PhpLayout, bytes: &Head) -> u32 {
    identity(bytes.get(layout::IDENTITY..).unwrap_or_default(), &layout.identity())
}

/// The name with that of the class.
fn name(memory: &dyn Memory, bytes: &Head) -> Result<String, Unreadable> {
    let (name, class) = (word(bytes, FUNCTION_NAME), word(bytes, FUNCTION_CLASS));
    if name == 0 {
        return Ok(OUTSIDE.into());
    }
    let name = text(memory, name)?;
    if class == 0 {
        return Ok(name);
    }
    let class = text(memory, memory.word(class.wrapping_add(CLASS_NAME.into()))?)?;
    Ok(format!("{class}::{name}"))
}

/// Reads a string; what a class without a name has behind a zero is left out.
fn text(memory: &dyn Memory, at: u64) -> Result<String, Unreadable> {
    let mut head = [0; layout::TEXT as usize];
    if !memory.read(at, &mut head) {
        return Err(Unreadable(at));
    }
    let length = usize::try_from(word(&head, layout::TEXT_LENGTH as u32)).unwrap_or(usize::MAX).min(MAX_TEXT);
    let mut bytes = vec![0; length];
    if !memory.read(at.wrapping_add(layout::TEXT), &mut bytes) {
        return Err(Unreadable(at));
    }
    let shown = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(shown).into_owned())
}

fn word(bytes: &[u8], offset: u32) -> u64 {
    bytes.get(offset as usize..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}
