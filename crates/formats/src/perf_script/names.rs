//! Names as the text has them: what would break a line, steer a terminal or be taken for something else is escaped, see
//! [`escape`](crate::escape).

use std::borrow::Cow;

use super::head::head;
use crate::escape::escaped;

/// A thread's name. Its spaces are escaped only where a part of it would be taken for the thread's number.
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

/// An event's name, which is one word.
pub fn event(name: &str) -> Cow<'_, str> {
    escaped(name, |_, one| one == ' ')
}

/// A function's name, behind which comes its offset or not.
pub fn symbol(name: &str, has_offset: bool) -> Cow<'_, str> {
    // What is no offset must not look like one.
    let offset = name.rfind("+0x").filter(|_| !has_offset);
    escaped(name, |at, one| Some(at) == offset || (one == ' ' && (at == 0 || at + 1 == name.len())))
}

/// A file, which stands in brackets.
pub fn file(path: &str) -> Cow<'_, str> {
    let end = path.strip_suffix(" (deleted)").map_or(path.len(), str::len);
    let is_inner = |at: usize| at < end && (at == 0 || path[..at].ends_with(' '));
    escaped(path, |at, one| match one {
        '(' => is_inner(at),
        ' ' => at == 0 || at + 1 == path.len(),
        _ => false,
    })
}

/// A source file, behind which comes a line's number.
pub fn source(path: &str) -> Cow<'_, str> {
    escaped(path, |_, one| one == ' ')
}
