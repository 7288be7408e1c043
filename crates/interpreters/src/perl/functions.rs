//! Functions of Perl and their names.

use super::layout::{
    self, BODY_LAST_SYMBOL, BODY_NAMES, CODE_FILE, CODE_FLAGS, CODE_NAME, CODE_PACKAGE, GLOB_NAME,
    GLOB_PACKAGE, LEXICAL, MASKS, MAX_CODE_BYTES, NAMED, NAMES_COUNT, PACKAGE_SYMBOLS, PerlLayout, TEXT,
    TEXT_LENGTH,
};
use crate::function::{identity, read_same};
use crate::memory::{head, word_in};
use crate::{CodeId, Function, Memory, Unreadable};

/// Longest name that is read completely, in bytes.
const MAX_TEXT: usize = 4096;
/// Bytes of a text that are read at once.
const PART: usize = 64;
/// Words of a file name that form its identity.
const FILE_WORDS: usize = MASKS.len();
/// Names of code outside of functions, and of code compiled at run time.
const OUTSIDE: &str = "<main>";
const EVAL: &str = "(eval)";
/// Name of an anonymous function or package.
const ANONYMOUS: &str = "__ANON__";
/// Prefix of the file names of code without a file.
const EVAL_FILE: &str = "(eval ";

type Head = [u8; MAX_CODE_BYTES];

/// Reads a function, or the name of a file, if the memory still matches `id`.
pub(super) fn read(memory: &dyn Memory, layout: &PerlLayout, id: CodeId) -> Result<Function, Unreadable> {
    let function = read_same(memory, id, identity_of, |bytes| {
        let name = name(memory, layout, bytes)?;
        let file = word_in(bytes, CODE_FILE);
        let file = if file == 0 { String::new() } else { text(memory, file, MAX_TEXT)? };
        Ok(Function::without_lines(name, file, 0))
    });
    function.or_else(|error| if file_id(memory, id.at)? == id { outside(memory, id.at) } else { Err(error) })
}

/// Identity of the function whose body is at an address.
pub(super) fn id(memory: &dyn Memory, at: u64) -> Result<CodeId, Unreadable> {
    Ok(CodeId { at, identity: identity_of(&head(memory, at)?) })
}

/// Identity of the code of a file, by the file's name.
pub(super) fn file_id(memory: &dyn Memory, at: u64) -> Result<CodeId, Unreadable> {
    let mut words = [0; 8 * FILE_WORDS];
    for (place, bytes) in words.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        *bytes = head(memory, at.wrapping_add(8 * place as u64))?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes[end..].fill(0);
            return Ok(CodeId { at, identity: identity(&words, &[!0; FILE_WORDS]) });
        }
    }
    // The BPF programs put a NUL at the end.
    words[8 * FILE_WORDS - 1] = 0;
    Ok(CodeId { at, identity: identity(&words, &[!0; FILE_WORDS]) })
}

fn identity_of(bytes: &Head) -> u32 {
    identity(bytes.get(layout::IDENTITY..).unwrap_or_default(), &MASKS)
}

fn outside(memory: &dyn Memory, at: u64) -> Result<Function, Unreadable> {
    let file = text(memory, at, MAX_TEXT)?;
    let name = if file.starts_with(EVAL_FILE) { EVAL } else { OUTSIDE };
    Ok(Function::without_lines(name.into(), file, 0))
}

/// Name qualified with the package, as `caller` shows it.
fn name(memory: &dyn Memory, layout: &PerlLayout, bytes: &Head) -> Result<String, Unreadable> {
    let word = |at: u64, offset: u32| memory.word(at.wrapping_add(offset.into()));
    let (mut name, mut package) = (word_in(bytes, CODE_NAME), word_in(bytes, CODE_PACKAGE));
    if word_in(bytes, CODE_FLAGS) & NAMED == 0 && name != 0 {
        let glob = word(name, 0)?;
        (name, package) = (word(glob, GLOB_NAME)?, word(glob, GLOB_PACKAGE)?);
    }
    let name = if name == 0 { ANONYMOUS.to_owned() } else { key(memory, name)? };
    if package == 0 || word_in(bytes, CODE_FLAGS) & LEXICAL != 0 {
        return Ok(name);
    }
    let body = word(package, 0)?;
    let names = if layout.has_names_in_body {
        body.wrapping_add(BODY_NAMES.into())
    } else {
        let last = word(body, BODY_LAST_SYMBOL)?;
        word(package, PACKAGE_SYMBOLS)?.wrapping_add(last.wrapping_add(1).wrapping_mul(8))
    };
    let mut package = memory.word(names)?;
    // A package may have several names.
    if word(names, NAMES_COUNT)? >> 32 != 0 {
        package = memory.word(package)?;
    }
    let package = if package == 0 { ANONYMOUS.to_owned() } else { key(memory, package)? };
    Ok(format!("{package}::{name}"))
}

/// A name in the form that hashes store (`HEK`).
fn key(memory: &dyn Memory, at: u64) -> Result<String, Unreadable> {
    let length = (word_in(&head::<8>(memory, at)?, 0) >> (8 * TEXT_LENGTH)) as usize;
    text(memory, at.wrapping_add(TEXT.into()), length)
}

/// Reads a NUL-terminated text of at most `most` bytes.
fn text(memory: &dyn Memory, at: u64, most: usize) -> Result<String, Unreadable> {
    let mut bytes = Vec::new();
    while bytes.len() < most.min(MAX_TEXT) {
        let mut part = [0; PART];
        let place = at.wrapping_add(bytes.len() as u64);
        // Readable memory may end with the text.
        let part = if memory.read(place, &mut part) { &part[..] } else { &head::<1>(memory, place)?[..] };
        let end = part.iter().position(|&byte| byte == 0);
        bytes.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() {
            break;
        }
    }
    bytes.truncate(most);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
