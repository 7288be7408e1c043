//! Data by which the programs walk stacks: mappings of processes, tables and rules of files, layouts of interpreters' structures.

/// The most user frames of a stack; a power of two.
pub const MAX_FRAMES: u32 = 4096;
/// The most kernel frames of a stack.
pub const MAX_KERNEL_FRAMES: u32 = 127;
/// Bytes of one chunk of the memory for tables; a power of two. A larger table is in several chunks, with a [`File`] for each piece.
pub const CHUNK_BYTES: u32 = 8388608;
/// The most chunks.
pub const MAX_CHUNKS: u32 = 64;
/// Mappings that are stored per process; a power of two.
pub const MAX_MAPPINGS: u32 = 64;
/// Mappings with copies of files' text that are stored per process.
pub const COPIED_TEXTS: u32 = 4;
/// Entries of [`Space::hints`]; a power of two.
pub const HINTS: u32 = 128;
/// Processes whose mappings are stored.
pub const MAX_SPACES: u32 = 4096;
/// Numbers for files and for pieces of tables. Stacks through files beyond them are walked in user space.
pub const MAX_FILES: u32 = 8192;
/// The last numbers of [`MAX_FILES`], which are for pieces of tables after their first.
pub const MAX_PIECES: u32 = 256;
/// Pieces that one table may have.
pub const TABLE_PIECES: u32 = 8;
/// Code segments that a file may have. Files with more are walked in user space.
pub const SEGMENTS: u32 = 4;
/// The most script frames in a stack.
pub const MAX_SCRIPT_FRAMES: u32 = 1024;
/// Entries of the hash table of code objects that were reported; a power of two.
pub const TOLD: u32 = 16384;
/// The most bytes of an interpreter's frame that are read.
pub const SCRIPT_FRAME_BYTES: u32 = 112;
/// Words of a code object that distinguish it from others.
pub const SCRIPT_IDENTITY_WORDS: u32 = 16;
/// Layouts of interpreters' structures that can be stored at one time.
pub const MAX_LAYOUTS: u32 = 64;
/// Rules that each CPU caches; a power of two.
pub const CACHED_RULES: u32 = 8192;
/// Bytes of user memory that are copied at one time; a power of two.
pub const WINDOW_BYTES: u32 = 1024;
/// [`WINDOW_BYTES`] plus a word.
pub const WINDOW_ROOM: u32 = 1032;
/// Begin of an empty window: no word is within its reach.
pub const NO_WINDOW: u64 = 0x8000000000000000;
/// Bits of a file's number.
pub const FILE_BITS: u32 = 13;
/// File number of memory that no file backs, or of files beyond [`MAX_FILES`].
pub const FILE_NONE: u32 = 0;
/// File number of the vdso.
pub const FILE_VDSO: u32 = 1;
/// The first number for a file other than the vdso.
pub const FILE_FIRST: u32 = 2;
/// A kind of rule in addition to those of `plumb_unwind::rule::Kind`: the stub of a procedure linkage table, which has pushed a word
/// once the low four bits of the program counter are `value` or more.
pub const KIND_PLT: u32 = 64;
/// An additional kind of rule: code that returns from a signal handler, where the stack pointer points at a `struct ucontext`.
pub const KIND_SIGNAL: u32 = 65;
/// An additional kind of rule: code that switches stacks and has the caller's frame in the frame pointer, which is 0 if there is no
/// caller. With a `value` of 1 the stack is not switched yet, and the return address is on top of it.
pub const KIND_SWITCH: u32 = 66;
/// An additional kind of rule: the CFA is the word at rsp + the lower half of `value`, plus the upper half. Hand-written code that
/// aligns its stack saves its earlier stack pointer there.
pub const KIND_SP_WORD: u32 = 67;
/// An additional kind of rule: the CFA is the word at rbp + the lower half of `value`, plus the upper half. Compilers write this for
/// functions that align their stack. If the upper half is [`DRAP`], rbp is saved where it points.
pub const KIND_FP_WORD: u32 = 68;
/// Upper half of `value` if the CFA is the word itself and rbp is saved where it points.
pub const DRAP: u32 = 0x8000;
/// State of a file: nobody has asked for its table.
pub const STATE_UNKNOWN: u32 = 0;
/// State of a file: its table was requested.
pub const STATE_ASKED: u32 = 1;
/// State of a file: its table is loaded.
pub const STATE_READY: u32 = 2;
/// State of a file: it has no table.
pub const STATE_NONE: u32 = 3;
/// State of a file: it is memory that the kernel keeps as a file, shared or of `memfd_create`.
pub const STATE_MEMORY: u32 = 4;
/// The most words of the stack that are scanned for the caller of a frame without rules.
pub const SCANNED_WORDS: u32 = 512;
/// The most frames of one stack whose caller is found by scanning.
pub const SCANNED_FRAMES: u32 = 4;
/// Linkage of an interpreter's frames. Python up to 3.10: each frame has a call of the evaluation loop to itself.
pub const CHAIN_SINGLE: u32 = 0;
/// Python 3.11: each call of the evaluation loop has a structure on the stack, which points at its frames.
pub const CHAIN_CFRAMES: u32 = 1;
/// Python since 3.12: the last frame of each call of the evaluation loop is on the stack and runs no code.
pub const CHAIN_ENTRY_FRAMES: u32 = 2;
/// PHP: the calls of the main thread, including functions that are written in C.
pub const CHAIN_PHP: u32 = 3;
/// Ruby: the frames are contiguous in memory, including those of functions that are written in C.
pub const CHAIN_RUBY: u32 = 4;
/// Perl: lists of contexts. Calls are one kind of context.
pub const CHAIN_PERL: u32 = 5;
/// Value of an offset if the structure has no such member.
pub const NO_MEMBER: u32 = 0xffffffff;

/// An executable mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Offset of the mapping in the file, in bytes.
    pub offset: u64,
    /// Length in pages of 4 KiB; 0 for an unused entry.
    pub pages: u32,
    /// Number of the file.
    pub file: u32,
}

/// Anonymous memory with a copy of a file's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CopiedText {
    /// First address of the mapping.
    pub start: u64,
    /// Offset of the text in the file, in bytes.
    pub offset: u64,
    /// Number of the file; 0 for an unused entry.
    pub file: u32,
    /// Zero.
    pub zero: u32,
}

/// All anonymous memory of a process that has copies of files' text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CopiedTexts {
    /// The mappings.
    pub all: [CopiedText; COPIED_TEXTS as usize],
}

/// The stored mappings of a process.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Space {
    /// The kernel's address of the process' memory; an exec changes it.
    pub mm: u64,
    /// Number that changes with each process lifetime and each change of its mappings.
    pub birth: u64,
    /// An address in an interpreter's file that a stack led through; 0: none did.
    pub script: u64,
    /// Number of mappings entered so far.
    pub entered: u32,
    /// Zero.
    pub zero: u32,
    /// Index of the mapping where an address was last found, by a hash of the address.
    pub hints: [u8; HINTS as usize],
    /// The mappings, in no order.
    pub mappings: [Mapping; MAX_MAPPINGS as usize],
}

/// A cached rule. Walks on one CPU may interrupt each other while they write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CachedRule {
    /// Offset in the file above [`FILE_BITS`] bits of the file's number, mixed with the rule; 0: unused.
    pub mark: u64,
    /// The rule.
    pub rule: u64,
}

/// The rules that a CPU caches. Entries stay valid, as files' tables never change.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RuleCache {
    /// The rules, by the hash of offset and file.
    pub rules: [CachedRule; CACHED_RULES as usize],
}

/// User memory that was copied for a walk.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Window {
    /// Address of the copied memory; [`NO_WINDOW`]: the window is empty.
    pub begin: u64,
    /// The bytes, and space for a word that begins with the last of them.
    pub bytes: [u8; WINDOW_ROOM as usize],
}

/// The identity of a file in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FileKey {
    /// Inode number.
    pub inode: u64,
    /// Size in bytes. Writing to a file in place changes it most of the time.
    pub size: u64,
    /// Device, as the kernel packs it.
    pub device: u32,
    /// Generation of the inode.
    pub generation: u32,
}

/// A code segment of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Offset of the first byte in the file.
    pub begin: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Number to add to an offset in the file to get the stated address.
    pub delta: u64,
}

/// A file and the location of its table. The `_at` members are byte offsets from the beginning of the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct File {
    /// State: one of the `STATE_` constants.
    pub state: u32,
    /// Number of the chunk.
    pub chunk: u32,
    /// First address of the table's first page.
    pub base: u64,
    /// First address after the table, or after this piece of it.
    pub end: u64,
    /// Offset of the rules.
    pub rules_at: u32,
    /// Offset of the pages.
    pub pages_at: u32,
    /// Offset of the rows.
    pub rows_at: u32,
    /// Number of pages.
    pub pages: u32,
    /// Number of rows.
    pub rows: u32,
    /// Time of the last use, in units of 2³⁰ nanoseconds.
    pub used: u32,
    /// Number of the entry with the next piece of the table; 0: this is the last piece.
    pub next: u32,
    /// Number of the layout of the interpreter's structures.
    pub layout: u32,
    /// Stated address of the state of the interpreter in this file; 0: the file has no interpreter.
    pub script: u64,
    /// Code segments of the file; unused entries are empty.
    pub segments: [Segment; SEGMENTS as usize],
}

/// Offsets of members of an interpreter's structures (`plumb_interpreters::Root`). Descriptions name Python's structures and apply to
/// the corresponding ones of other interpreters: a frame is `zend_execute_data`, `rb_control_frame_t` or `PERL_CONTEXT`; code is
/// `zend_function`, the body of an `rb_iseq_t`, or `XPVCV`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ScriptLayout {
    /// Masks of the constant bits in the words of a code object.
    pub identity: [u64; SCRIPT_IDENTITY_WORDS as usize],
    /// Linkage of frames: one of the `CHAIN_` constants.
    pub chain: u32,
    /// `_PyRuntimeState`: the list of interpreters. Ruby: the ractor's list of threads. Perl: the interpreter's phase.
    pub interpreters: u32,
    /// `_PyRuntimeState`: the thread that holds the lock; 0: no such member. Ruby: the ractor's context of that thread. Perl: the
    /// interpreter's current statement.
    pub current: u32,
    /// `PyInterpreterState`: the next interpreter.
    pub interpreter_next: u32,
    /// `PyInterpreterState`: the threads. Ruby: the thread's context.
    pub threads: u32,
    /// `PyThreadState`: the next thread.
    pub thread_next: u32,
    /// `PyThreadState`: the thread pointer. Ruby: a member of the thread, or of what `thread_native` points to if that is not 0.
    pub thread_id: u32,
    /// `PyThreadState`: the pointer that leads to the frame.
    pub thread_frame: u32,
    /// `_PyCFrame`: the frame; [`NO_MEMBER`]: the structure does not exist. Perl: the member in the body of packages that leads to the
    /// name; [`NO_MEMBER`]: the name is behind their symbols.
    pub cframe_frame: u32,
    /// `_PyCFrame`: the next one further out. Ruby: the context's thread.
    pub cframe_previous: u32,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// Frame: its code.
    pub frame_code: u32,
    /// Frame: its caller.
    pub frame_caller: u32,
    /// Frame: its instruction.
    pub frame_instruction: u32,
    /// Frame: the byte that says whether it is the last of its evaluation loop. Perl: the purpose of a list of contexts.
    pub frame_entry: u32,
    /// The bits of the byte at `frame_entry` that are set in the last frame of an evaluation loop.
    pub frame_entry_bits: u32,
    /// Frame: its owner.
    pub frame_owner: u32,
    /// Bytes of a code object that are sent.
    pub code_bytes: u32,
    /// `PyCodeObject`: the file name.
    pub code_file: u32,
    /// `PyCodeObject`: the name.
    pub code_name: u32,
    /// `PyCodeObject`: the line table. PHP: the class.
    pub code_lines: u32,
    /// Code object: the first of the words that distinguish it from others.
    pub code_identity: u32,
    /// `rb_thread_t.nt`; 0: the member does not exist.
    pub thread_native: u32,
    /// Zero.
    pub zero: u32,
}
