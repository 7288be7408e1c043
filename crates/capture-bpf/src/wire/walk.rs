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
/// Offsets of members of an interpreter's structures that only its reader knows.
pub const SCRIPT_WORDS: u32 = 20;
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

/// Offsets of members of an interpreter's structures (`plumb_interpreters::KernelLayout`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ScriptLayout {
    /// Masks of the constant bits in the words of a code object.
    pub identity: [u64; SCRIPT_IDENTITY_WORDS as usize],
    /// Code object: the first of the words that distinguish it from others.
    pub identity_at: u32,
    /// Bytes of a code object that are sent.
    pub code_bytes: u32,
    /// Number of the interpreter's reader.
    pub reader: u32,
    /// Zero.
    pub zero: u32,
    /// Offsets that only this reader knows, by their number.
    pub words: [u32; SCRIPT_WORDS as usize],
}
