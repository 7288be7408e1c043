//! Numbers that the BPF program for V8 shares (crates/capture-bpf/bpf/interpreters/v8.h). `WORD_`: the index of an offset in
//! [`KernelLayout::words`](crate::KernelLayout::words).

/// Number of the reader.
pub const READER: u32 = 4;

/// `JSFunction`: its `SharedFunctionInfo`.
pub const WORD_SHARED: u32 = 0;
/// The first of the instance types of functions.
pub const WORD_FIRST_FUNCTION: u32 = 1;
/// The last of them.
pub const WORD_LAST_FUNCTION: u32 = 2;
/// The instance type of bytecode.
pub const WORD_BYTECODE: u32 = 3;
/// `SharedFunctionInfo`: its script.
pub const WORD_SCRIPT: u32 = 4;
/// `Script`: its number, which no other script of the process has or had.
pub const WORD_SCRIPT_NUMBER: u32 = 5;

/// Bit of a script's number in the identity of its functions.
pub const NUMBERED: u32 = 0x80000000;
/// `Map`: the instance type.
pub const MAP_TYPE: u32 = 12;
/// Bytes of a frame below its frame pointer that are read: the offset in the bytecode, the bytecode, the number of arguments, the function, the context.
pub const FRAME_BYTES: u32 = 40;
/// In these: the offset of the bytecode, if it is interpreted.
pub const FRAME_OFFSET: u32 = 0;
/// In these: the bytecode.
pub const FRAME_BYTECODE: u32 = 8;
/// In these: the function.
pub const FRAME_FUNCTION: u32 = 24;
/// In these: the context, or the type of another frame.
pub const FRAME_CONTEXT: u32 = 32;
/// The position in a frame that does not tell it: `UNKNOWN` in `function.rs`.
pub const NO_OFFSET: u32 = 0x7fffffff;
