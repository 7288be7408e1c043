//! Names in the text: characters that break a line, control a terminal or are ambiguous are escaped, see
//! [`escape`](crate::escape).

use std::borrow::Cow;

use super::head::head;
use crate::escape::escaped;

/// Writes a thread's name. Spaces are escaped only if a part of the name could be taken for the thread's id.
pub fn comm(name: &str) -> Cow<'_, str> {
    let is_outer = |at: usize, length| at == 0 || at + length == name.len();
    let plain =
        escaped(name, |at, one| (one == ' ' && is_outer(at, 1)) || (at == 0 && matches!(one, '#' | ':')));
    let is_read = |ids: &str, tid| {
        let line = format!("{plain} {ids} [000] 1.000000: 1 e: ");
        head(&line).is_some_and(|head| head.comm == plain && head.tid == Some(tid))
    };
    if !name.contains(' ') || (is_read("7/7", 7) && is_read("7", 7)) {
        return plain;
    }
    escaped(name, |at, one| one == ' ' || (at == 0 && matches!(one, '#' | ':')))
}

/// Writes an event's name, which is one word.
pub fn event(name: &str) -> Cow<'_, str> {
    escaped(name, |_, one| one == ' ')
}

/// Writes a function's name, with or without an offset after it.
pub fn symbol(name: &str, has_offset: bool) -> Cow<'_, str> {
    // A name without an offset must not look as if it had one.
    let offset = name.rfind("+0x").filter(|_| !has_offset);
    escaped(name, |at, one| Some(at) == offset || (one == ' ' && (at == 0 || at + 1 == name.len())))
}

/// Writes a file name, which is in parentheses.
pub fn file(path: &str) -> Cow<'_, str> {
    let end = path.strip_suffix(" (deleted)").map_or(path.len(), str::len);
    let is_inner = |at: usize| at < end && (at == 0 || path[..at].ends_with(' '));
    escaped(path, |at, one| match one {
        '(' => is_inner(at),
        ' ' => at == 0 || at + 1 == path.len(),
        _ => false,
    })
}

/// Writes a source file name, which is followed by a line number.
pub fn source(path: &str) -> Cow<'_, str> {
    escaped(path, |_, one| one == ' ')
}
