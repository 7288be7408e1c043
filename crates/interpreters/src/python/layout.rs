//! Offsets of the members of CPython's structures, in bytes. Tests compare them with those of a C compiler.
//!
//! Up to 3.12 the structures of a minor version never change. From 3.13 on they may change with each release, and the interpreter
//! states its offsets itself ([`super::offsets`]).

use super::kernel::*;
pub(super) use super::kernel::{OWNED_BY_GENERATOR, OWNED_BY_LOOP};
use super::lines::LineTable;
use crate::KernelLayout;
use crate::root::words;
pub(super) use crate::root::{IDENTITY_WORDS, MAX_CODE_BYTES, MAX_FRAME_BYTES};

/// The structures of CPython in a file that are needed to read its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonLayout {
    /// `_PyRuntimeState`
    pub runtime: Runtime,
    /// `PyInterpreterState`
    pub interpreter: Interpreter,
    /// `PyThreadState`
    pub thread: Thread,
    /// Organization of the frames.
    pub chain: Chain,
    /// A frame.
    pub frame: FrameLayout,
    /// `PyCodeObject`
    pub code: CodeLayout,
    /// Strings and bytes.
    pub object: Object,
}

impl PythonLayout {
    /// The offsets for the BPF program.
    pub(super) fn for_kernel(&self) -> KernelLayout {
        let PythonLayout { runtime, interpreter, thread, chain, frame, code, .. } = self;
        let (chain, cframe_frame, cframe_previous) = match *chain {
            Chain::Single => (CHAIN_SINGLE, NO_MEMBER, 0),
            Chain::CFrames { frame, previous } => (CHAIN_CFRAMES, frame, previous),
            Chain::EntryFrames { cframe } => (CHAIN_ENTRY_FRAMES, cframe.unwrap_or(NO_MEMBER), 0),
        };
        KernelLayout {
            reader: READER,
            code_bytes: code.size,
            identity_at: IDENTITY as u32,
            identity: code.identity,
            words: words([
                (WORD_CHAIN, chain),
                (WORD_INTERPRETERS, runtime.interpreters),
                (WORD_CURRENT, runtime.current),
                (WORD_INTERPRETER_NEXT, interpreter.next),
                (WORD_THREADS, interpreter.threads),
                (WORD_THREAD_NEXT, thread.next),
                (WORD_THREAD_ID, thread.id),
                (WORD_THREAD_FRAME, thread.frame),
                (WORD_CFRAME_FRAME, cframe_frame),
                (WORD_CFRAME_PREVIOUS, cframe_previous),
                (WORD_FRAME_BYTES, frame.size),
                (WORD_FRAME_CODE, frame.code),
                (WORD_FRAME_CALLER, frame.caller),
                (WORD_FRAME_INSTRUCTION, frame.instruction),
                (WORD_FRAME_ENTRY, frame.is_entry),
                (WORD_FRAME_OWNER, frame.owner),
                (WORD_CODE_FILE, code.file),
                (WORD_CODE_NAME, code.name),
                (WORD_CODE_LINES, code.lines),
            ]),
        }
    }
}

/// `_PyRuntimeState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// `interpreters.head`
    pub interpreters: u32,
    /// `gilstate.tstate_current`, the thread that holds the GIL; 0: the version has no such member.
    pub current: u32,
}

/// `PyInterpreterState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// `next`
    pub next: u32,
    /// `threads.head`
    pub threads: u32,
}

/// `PyThreadState`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// `next`
    pub next: u32,
    /// `thread_id`: the result of pthread_self(), which is the thread pointer.
    pub id: u32,
    /// `cframe`, or the pointer to the current frame in versions without it.
    pub frame: u32,
}

/// Organization of a thread's frames into eval frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Each frame has its own eval frame (up to 3.10).
    Single,
    /// Each eval frame has a `_PyCFrame` on the stack, which points to its frames; the last of them is marked (3.11).
    CFrames {
        /// `_PyCFrame.current_frame`
        frame: u32,
        /// `_PyCFrame.previous`
        previous: u32,
    },
    /// The last frame of each eval frame is on the native stack and runs no code (since 3.12).
    EntryFrames {
        /// `_PyCFrame.current_frame`; `None`: the thread itself points to its frame.
        cframe: Option<u32>,
    },
}

/// `PyFrameObject` (up to 3.10), `_PyInterpreterFrame`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLayout {
    /// Bytes of a frame that are read.
    pub size: u32,
    /// `f_code`, `f_executable`
    pub code: u32,
    /// `f_back`, `previous`
    pub caller: u32,
    /// `f_lasti`, `prev_instr`, `instr_ptr`
    pub instruction: u32,
    /// `is_entry` of [`Chain::CFrames`].
    pub is_entry: u32,
    /// `owner`; unused with [`Chain::Single`].
    pub owner: u32,
}

/// `PyCodeObject`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeLayout {
    /// Bytes of a code object that are read.
    pub size: u32,
    /// `co_firstlineno`
    pub first_line: u32,
    /// `co_filename`
    pub file: u32,
    /// `co_qualname`, or `co_name` up to 3.10
    pub name: u32,
    /// `co_linetable`, `co_lnotab`
    pub lines: u32,
    /// Format of the line table.
    pub line_table: LineTable,
    /// `_co_firsttraceable`; 0: every function in the list of frames has started.
    pub first_traceable: u32,
    /// `co_code_adaptive`; 0: instructions are counted from 0.
    pub instructions: u32,
    /// Masks of the bits at [`IDENTITY`] that never change while the code object exists.
    pub identity: [u64; IDENTITY_WORDS],
}

/// `PyBytesObject`, `PyASCIIObject` and `PyCompactUnicodeObject`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// `ob_size` of bytes
    pub size: u32,
    /// `ob_sval` of bytes
    pub bytes: u32,
    /// `length` of a string
    pub length: u32,
    /// `state` of a string
    pub state: u32,
    /// Offset of the characters of an ASCII string.
    pub ascii: u32,
    /// Offset of the characters of any other string.
    pub wide: u32,
}

/// Offset of the words that identify a code object.
pub const IDENTITY: usize = 16;

/// Hashes the immutable parts of a code object: its sizes, flags and numbers, and the addresses of everything that it refers to.
pub(super) fn identity(code: &[u8; MAX_CODE_BYTES], masks: &[u64; IDENTITY_WORDS]) -> u32 {
    crate::function::identity(&code[IDENTITY..], masks)
}

/// A mask of all words.
pub(super) const ALL_WORDS: [u64; IDENTITY_WORDS] = [!0; IDENTITY_WORDS];

/// A mask of all words except `bits` of one word and the last words.
const fn words_but(word: usize, bits: u64, last: usize) -> [u64; IDENTITY_WORDS] {
    let mut words = ALL_WORDS;
    words[word] &= !bits;
    let mut index = IDENTITY_WORDS - last;
    while index < IDENTITY_WORDS {
        words[index] = 0;
        index += 1;
    }
    words
}

/// Version 3.9.
pub(super) static V3_9: PythonLayout = PythonLayout {
    runtime: Runtime { interpreters: 32, current: 568 },
    interpreter: Interpreter { next: 0, threads: 8 },
    thread: Thread { next: 8, id: 176, frame: 24 },
    chain: Chain::Single,
    frame: FrameLayout { size: 108, code: 32, caller: 24, instruction: 104, is_entry: 0, owner: 0 },
    code: CodeLayout {
        size: 144,
        first_line: 40,
        file: 104,
        name: 112,
        lines: 120,
        line_table: LineTable::Lnotab,
        first_traceable: 0,
        instructions: 0,
        // `co_zombieframe` and `co_weakreflist` change.
        identity: words_but(0, 0, 2),
    },
    object: Object { size: 16, bytes: 32, length: 16, state: 32, ascii: 48, wide: 72 },
};

/// Version 3.10.
pub(super) static V3_10: PythonLayout = PythonLayout {
    frame: FrameLayout { size: 100, instruction: 96, ..V3_9.frame },
    code: CodeLayout { line_table: LineTable::Ranges, ..V3_9.code },
    ..V3_9
};

/// Version 3.11.
pub(super) static V3_11: PythonLayout = PythonLayout {
    runtime: Runtime { interpreters: 40, current: 576 },
    interpreter: Interpreter { next: 0, threads: 16 },
    thread: Thread { next: 8, id: 152, frame: 56 },
    chain: Chain::CFrames { frame: 8, previous: 16 },
    frame: FrameLayout { size: 72, code: 32, caller: 48, instruction: 56, is_entry: 68, owner: 69 },
    code: CodeLayout {
        size: 184,
        first_line: 72,
        file: 112,
        name: 128,
        lines: 136,
        line_table: LineTable::Locations,
        first_traceable: 168,
        instructions: 184,
        // `co_warmup` and `_co_linearray_entry_size` change.
        identity: words_but(4, 0xffff_ffff << 32, 0),
    },
    object: Object { size: 16, bytes: 32, length: 16, state: 32, ascii: 48, wide: 72 },
};

/// Version 3.12.
pub(super) static V3_12: PythonLayout = PythonLayout {
    runtime: Runtime { interpreters: 40, current: 0 },
    interpreter: Interpreter { next: 0, threads: 72 },
    thread: Thread { next: 8, id: 136, frame: 56 },
    chain: Chain::EntryFrames { cframe: Some(0) },
    frame: FrameLayout { size: 72, code: 0, caller: 8, instruction: 56, is_entry: 0, owner: 70 },
    code: CodeLayout {
        size: 192,
        first_line: 68,
        file: 112,
        name: 128,
        lines: 136,
        line_table: LineTable::Locations,
        first_traceable: 176,
        instructions: 192,
        identity: ALL_WORDS,
    },
    object: Object { size: 16, bytes: 32, length: 16, state: 32, ascii: 40, wide: 56 },
};

/// The structures of a minor version of Python 3 that does not state its offsets itself, if it is supported.
pub(super) fn of(minor: u8) -> Option<&'static PythonLayout> {
    match minor {
        9 => Some(&V3_9),
        10 => Some(&V3_10),
        11 => Some(&V3_11),
        12 => Some(&V3_12),
        _ => None,
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
