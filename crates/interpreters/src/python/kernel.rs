//! Numbers that the BPF program for CPython shares (crates/capture-bpf/bpf/interpreters/python.h). `WORD_`: the index of an offset in
//! [`KernelLayout::words`](crate::KernelLayout::words).

/// Number of the reader.
pub const READER: u32 = 0;

/// Linkage of frames: one of the `CHAIN_` constants.
pub const WORD_CHAIN: u32 = 0;
/// `_PyRuntimeState`: the list of interpreters.
pub const WORD_INTERPRETERS: u32 = 1;
/// `_PyRuntimeState`: the thread that holds the lock; 0: no such member.
pub const WORD_CURRENT: u32 = 2;
/// `PyInterpreterState`: the next interpreter.
pub const WORD_INTERPRETER_NEXT: u32 = 3;
/// `PyInterpreterState`: the threads.
pub const WORD_THREADS: u32 = 4;
/// `PyThreadState`: the next thread.
pub const WORD_THREAD_NEXT: u32 = 5;
/// `PyThreadState`: the thread pointer.
pub const WORD_THREAD_ID: u32 = 6;
/// `PyThreadState`: the pointer that leads to the frame.
pub const WORD_THREAD_FRAME: u32 = 7;
/// `_PyCFrame`: the frame; [`NO_MEMBER`]: the structure does not exist.
pub const WORD_CFRAME_FRAME: u32 = 8;
/// `_PyCFrame`: the next one further out.
pub const WORD_CFRAME_PREVIOUS: u32 = 9;
/// Bytes of a frame.
pub const WORD_FRAME_BYTES: u32 = 10;
/// Frame: its code.
pub const WORD_FRAME_CODE: u32 = 11;
/// Frame: its caller.
pub const WORD_FRAME_CALLER: u32 = 12;
/// Frame: its instruction.
pub const WORD_FRAME_INSTRUCTION: u32 = 13;
/// Frame: the byte that says whether it is the last of its evaluation loop.
pub const WORD_FRAME_ENTRY: u32 = 14;
/// Frame: its owner.
pub const WORD_FRAME_OWNER: u32 = 15;
/// `PyCodeObject`: the file name.
pub const WORD_CODE_FILE: u32 = 16;
/// `PyCodeObject`: the name.
pub const WORD_CODE_NAME: u32 = 17;
/// `PyCodeObject`: the line table.
pub const WORD_CODE_LINES: u32 = 18;

/// Up to 3.10: each frame has a call of the evaluation loop to itself.
pub const CHAIN_SINGLE: u32 = 0;
/// 3.11: each call of the evaluation loop has a structure on the stack, which points at its frames.
pub const CHAIN_CFRAMES: u32 = 1;
/// Since 3.12: the last frame of each call of the evaluation loop is on the stack and runs no code.
pub const CHAIN_ENTRY_FRAMES: u32 = 2;
/// Value of an offset if the structure has no such member.
pub const NO_MEMBER: u32 = 0xffffffff;
/// `FRAME_OWNED_BY_GENERATOR`
pub const OWNED_BY_GENERATOR: u8 = 1;
/// `FRAME_OWNED_BY_CSTACK`, and from 3.14 on also `FRAME_OWNED_BY_INTERPRETER`: the smallest owner of frames that run no code.
pub const OWNED_BY_LOOP: u8 = 3;
