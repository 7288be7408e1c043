//! Code and strings of Ruby (include/ruby/internal/core/rstring.h, rarray.h).

use super::kernel::{ARRAY, EMBEDDED, MEMBERS, TYPE};
use super::layout::{self, BODY_FILE, BODY_LINE, BODY_NAME, MAX_BODY_BYTES, RubyLayout, Strings};
use super::lines;
use crate::function::{identity, read_same};
use crate::memory::{head, word_in};
use crate::{CodeId, Function, Memory, Unreadable};

/// Longest name that is read completely, in bytes.
const MAX_TEXT: usize = 4096;
/// `RUBY_T_STRING`
const STRING: u64 = 5;
/// `RSTRING_NOEMBED`
const NOT_EMBEDDED: u64 = 1 << 13;
/// `RSTRING_EMBED_LEN_SHIFT` and its mask, up to 3.1.
const LENGTH_SHIFT: u32 = 14;
const LENGTH_MASK: u64 = 0x1f;

type Head = [u8; MAX_BODY_BYTES];

/// Reads the function of a body, if the memory still matches `id`.
pub(super) fn read(memory: &dyn Memory, layout: &RubyLayout, id: CodeId) -> Result<Function, Unreadable> {
    read_same(memory, id, identity_of, |bytes| {
        let name = text(memory, layout, word_in(bytes, BODY_NAME))?;
        let file = text(memory, layout, path(memory, word_in(bytes, BODY_FILE))?)?;
        let line = word_in(bytes, BODY_LINE);
        let first_line = if layout.has_plain_line { line as u32 } else { (line >> 1) as u32 };
        let lines = lines::read(memory, layout, bytes);
        let has_all_lines = lines.is_some();
        let text = Some(lines.unwrap_or_default());
        Ok(Function { text, has_all_lines, ..Function::without_lines(name, file, first_line) })
    })
}

/// Identity of the body at an address.
pub(super) fn id(memory: &dyn Memory, at: u64) -> Result<CodeId, Unreadable> {
    Ok(CodeId { at, identity: identity_of(&head(memory, at)?) })
}

fn identity_of(bytes: &Head) -> u32 {
    identity(bytes.get(BODY_FILE as usize..).unwrap_or_default(), &layout::IDENTITY)
}

/// Address of the string with the path of a file: the object itself, or the first element of an array that also has the real path.
fn path(memory: &dyn Memory, at: u64) -> Result<u64, Unreadable> {
    let flags = memory.word(at)?;
    match (flags & TYPE, flags & EMBEDDED != 0) {
        (ARRAY, true) => memory.word(at.wrapping_add(MEMBERS)),
        (ARRAY, false) => memory.word(memory.word(at.wrapping_add(MEMBERS + 16))?),
        _ => Ok(at),
    }
}

/// Reads a string.
fn text(memory: &dyn Memory, layout: &RubyLayout, at: u64) -> Result<String, Unreadable> {
    let flags = memory.word(at)?;
    if flags & TYPE != STRING {
        return Err(Unreadable(at));
    }
    let is_short = flags & NOT_EMBEDDED == 0;
    let (length, start) = match (layout.strings, is_short) {
        (Strings::InFlags, true) => (flags >> LENGTH_SHIFT & LENGTH_MASK, at.wrapping_add(MEMBERS)),
        (_, is_short) => {
            let behind_length = at.wrapping_add(MEMBERS + 8);
            let start = if is_short { behind_length } else { memory.word(behind_length)? };
            (memory.word(at.wrapping_add(MEMBERS))?, start)
        }
    };
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX).min(MAX_TEXT)];
    if memory.read(start, &mut bytes) {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    Err(Unreadable(start))
}
