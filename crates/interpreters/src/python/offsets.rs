//! The offsets that CPython 3.13 to 3.15 state themselves: `_Py_DebugOffsets` at the start of `_PyRuntime`.
//!
//! The format of the table is fixed within a minor version. Its values are validated, since they come from a file.

use super::layout::{
    ALL_WORDS, Chain, CodeLayout, FrameLayout, Interpreter, MAX_CODE_BYTES, MAX_FRAME_BYTES, Object,
    PythonLayout, Runtime, Thread,
};
use super::lines::LineTable;

/// Magic bytes at the start of the table.
const COOKIE: &[u8; 8] = b"xdebugpy";
/// Size in bytes of the longest supported table.
pub(super) const SIZE: usize = 888;
/// Upper bound of offsets; the interpreter's structure, the largest, has less than 512 KiB.
const MAX_OFFSET: u64 = 1 << 20;
/// Distance from `_co_firsttraceable`, which the table does not state, to the instructions: the same from 3.11 to 3.15.
const TRACEABLE_BEFORE: u32 = 16;
/// Size of `PyCompactUnicodeObject` minus `PyASCIIObject`, which the table does not state before 3.15.
const COMPACT: u32 = 16;

/// Word index of each group of the table.
struct Groups {
    thread: usize,
    /// Index of `thread_id` within the group of threads.
    thread_id: usize,
    frame: usize,
    code: usize,
    bytes: usize,
    unicode: usize,
}

const V3_13: Groups = Groups { thread: 19, thread_id: 5, frame: 28, code: 34, bytes: 64, unicode: 67 };
const V3_14: Groups = Groups { thread: 22, thread_id: 5, frame: 31, code: 39, bytes: 74, unicode: 77 };
const V3_15: Groups = Groups { thread: 22, thread_id: 8, frame: 39, code: 47, bytes: 86, unicode: 89 };

/// Whether the table belongs to a free-threaded interpreter, whose lists other threads may change while they are read.
pub(super) fn is_free_threaded(table: &[u8]) -> bool {
    word(table, 2).is_some_and(|word| word != 0)
}

/// Reads the table of an interpreter of a version (`PY_VERSION_HEX`). `None` if it is missing, belongs to another version, or
/// is inconsistent.
pub(super) fn read(table: &[u8], version: u32) -> Option<PythonLayout> {
    if !table.starts_with(COOKIE) || word(table, 1)? != u64::from(version) {
        return None;
    }
    let groups = match version >> 16 {
        0x030d => &V3_13,
        0x030e => &V3_14,
        0x030f => &V3_15,
        _ => return None,
    };
    let at = |index: usize| {
        word(table, index).filter(|&offset| offset < MAX_OFFSET).and_then(|offset| u32::try_from(offset).ok())
    };
    let Groups { thread, thread_id, frame, code, bytes, unicode } = *groups;
    let owner = at(frame + 5)?;
    let instructions = at(code + 9)?;
    let ascii = at(unicode + 3)?;
    let layout = PythonLayout {
        runtime: Runtime { interpreters: at(5)?, current: 0 },
        interpreter: Interpreter { next: at(8)?, threads: at(9)? },
        thread: Thread { next: at(thread + 2)?, id: at(thread + thread_id)?, frame: at(thread + 4)? },
        chain: Chain::EntryFrames { cframe: None },
        frame: FrameLayout {
            size: (owner.max(at(frame + 3)? + 7) + 1).next_multiple_of(8),
            code: at(frame + 2)?,
            caller: at(frame + 1)?,
            instruction: at(frame + 3)?,
            is_entry: 0,
            owner,
        },
        code: CodeLayout {
            size: instructions,
            first_line: at(code + 5)?,
            file: at(code + 1)?,
            name: at(code + 3)?,
            lines: at(code + 4)?,
            line_table: LineTable::Locations,
            first_traceable: instructions.checked_sub(TRACEABLE_BEFORE)?,
            instructions,
            identity: ALL_WORDS,
        },
        object: Object {
            size: at(bytes + 1)?,
            bytes: at(bytes + 2)?,
            length: at(unicode + 2)?,
            state: at(unicode + 1)?,
            ascii,
            wide: ascii.checked_add(COMPACT)?,
        },
    };
    makes_sense(&layout).then_some(layout)
}

/// Whether all members that are used lie within the part of their structure that is read.
fn makes_sense(layout: &PythonLayout) -> bool {
    let PythonLayout { frame, code, object, .. } = layout;
    let within = |size: u32, members: &[u32]| members.iter().all(|member| member.saturating_add(8) <= size);
    frame.size as usize <= MAX_FRAME_BYTES
        && within(frame.size, &[frame.code, frame.caller, frame.instruction])
        && frame.owner < frame.size
        && code.size as usize <= MAX_CODE_BYTES
        && within(code.size, &[code.first_line, code.file, code.name, code.lines, code.first_traceable])
        && within(object.ascii, &[object.length, object.state])
}

fn word(table: &[u8], index: usize) -> Option<u64> {
    table.get(8 * index..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
