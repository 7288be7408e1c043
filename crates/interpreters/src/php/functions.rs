//! Functions and strings of PHP.

use super::layout::{self, CLASS_NAME, FUNCTION_CLASS, FUNCTION_NAME, MAX_FUNCTION_BYTES, PhpLayout};
use crate::function::{identity, read_same};
use crate::memory::{head, word_in};
use crate::{CodeId, Function, Memory, Unreadable};

/// Longest name that is read completely, in bytes.
const MAX_TEXT: usize = 4096;
/// Name of code outside of functions.
const OUTSIDE: &str = "<main>";

type Head = [u8; MAX_FUNCTION_BYTES];

/// Reads a function, if the memory still matches `id`.
pub(super) fn read(memory: &dyn Memory, layout: &PhpLayout, id: CodeId) -> Result<Function, Unreadable> {
    read_same(
        memory,
        id,
        |bytes| identity_of(layout, bytes),
        |bytes| {
            let file = text(memory, word_in(bytes, layout.file))?;
            let first_line = word_in(bytes, layout.file + 8) as u32;
            Ok(Function::without_lines(name(memory, bytes)?, file, first_line))
        },
    )
}

/// Identity of the function at an address.
pub(super) fn id(memory: &dyn Memory, layout: &PhpLayout, at: u64) -> Result<CodeId, Unreadable> {
    Ok(CodeId { at, identity: identity_of(layout, &head(memory, at)?) })
}

fn identity_of(layout: &PhpLayout, bytes: &Head) -> u32 {
    identity(bytes.get(layout::IDENTITY..).unwrap_or_default(), &layout.identity())
}

/// Name qualified with the class.
fn name(memory: &dyn Memory, bytes: &Head) -> Result<String, Unreadable> {
    let (name, class) = (word_in(bytes, FUNCTION_NAME), word_in(bytes, FUNCTION_CLASS));
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

/// Reads a string up to its first NUL. The names of anonymous classes continue after one.
fn text(memory: &dyn Memory, at: u64) -> Result<String, Unreadable> {
    let head: [u8; layout::TEXT as usize] = head(memory, at)?;
    let length =
        usize::try_from(word_in(&head, layout::TEXT_LENGTH as u32)).unwrap_or(usize::MAX).min(MAX_TEXT);
    let mut bytes = vec![0; length];
    if !memory.read(at.wrapping_add(layout::TEXT), &mut bytes) {
        return Err(Unreadable(at));
    }
    let shown = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(shown).into_owned())
}
