//! What the kernel's programs walk stacks by: processes' mappings, files' tables and rules, layouts of Python's structures.

/// The most user frames of a stack; a power of two.
pub const MAX_FRAMES: u32 = 4096;
/// The most kernel frames of a stack.
pub const MAX_KERNEL_FRAMES: u32 = 127;
/// Bytes of one piece of the memory for tables; a power of two. Tables that take more are in several, with a [`File`] for each.
pub const CHUNK_BYTES: u32 = 8388608;
/// The most such pieces.
pub const MAX_CHUNKS: u32 = 64;
/// Mappings that are remembered of one process; a power of two.
pub const MAX_MAPPINGS: u32 = 64;
/// Mappings with copies of files' text that are remembered of one process.
pub const COPIED_TEXTS: u32 = 4;
/// Places in [`Space::hints`]; a power of two.
pub const HINTS: u32 = 128;
/// Processes whose mappings are remembered.
pub const MAX_SPACES: u32 = 4096;
/// Files that are told apart, and pieces of tables. Those beyond are walked in user space.
pub const MAX_FILES: u32 = 8192;
/// So many of the last of these numbers are for pieces of tables after their first.
pub const MAX_PIECES: u32 = 256;
/// Pieces that one table may have.
pub const TABLE_PIECES: u32 = 8;
/// Stretches of code that a file may have. Files with more are walked in user space.
pub const SEGMENTS: u32 = 4;
/// The most frames of an interpreted program in a stack.
pub const MAX_SCRIPT_FRAMES: u32 = 1024;
/// Places in which it is remembered which code was told of; a power of two.
pub const TOLD: u32 = 16384;
/// The most bytes of a frame of an interpreted program that are read.
pub const SCRIPT_FRAME_BYTES: u32 = 112;
/// Words of a code object that it is told from others by.
pub const SCRIPT_IDENTITY_WORDS: u32 = 16;
/// Layouts of the structures of interpreters that can be known at one time.
pub const MAX_LAYOUTS: u32 = 64;
/// Rules that each processor remembers; a power of two.
pub const CACHED_RULES: u32 = 8192;
/// Bytes of user memory that are copied at once; a power of two.
pub const WINDOW_BYTES: u32 = 1024;
/// The same, and a word more.
pub const WINDOW_ROOM: u32 = 1032;
/// Begin of a window that is none: no word is within reach of it.
pub const NO_WINDOW: u64 = 0x8000000000000000;
/// Bits of a file's number.
pub const FILE_BITS: u32 = 13;
/// Number of no file: memory without one, or one too many.
pub const FILE_NONE: u32 = 0;
/// Number of the vdso.
pub const FILE_VDSO: u32 = 1;
/// The first number for a file.
pub const FILE_FIRST: u32 = 2;
/// A kind of rule beside those of `plumb_unwind::rule::Kind`: the stub of a procedure linkage table, which has pushed a word
/// once the low four bits of the program counter are `value` or more.
pub const KIND_PLT: u32 = 64;
/// Likewise: the code that returns from a signal handler, where the stack pointer points at a `struct ucontext`.
pub const KIND_SIGNAL: u32 = 65;
/// Likewise: code that switches stacks and has the caller's frame in the frame pointer, which is 0 if there is no caller. With a
/// `value` of 1 the stack is not switched yet, and the return address on top of it.
pub const KIND_SWITCH: u32 = 66;
/// Likewise: the CFA is the word at rsp + the lower half of `value`, plus the upper half. Hand-written code that aligns its stack keeps
/// what it was there.
pub const KIND_SP_WORD: u32 = 67;
/// Likewise, at rbp: what compilers write for functions that align their stack. With an upper half of [`DRAP`] rbp is saved where it
/// points.
pub const KIND_FP_WORD: u32 = 68;
/// What the upper half of `value` is where the CFA is the word alone and rbp is saved where it points.
pub const DRAP: u32 = 0x8000;
/// State of a file: nobody has asked for its table.
pub const STATE_UNKNOWN: u32 = 0;
/// Its table was asked for.
pub const STATE_ASKED: u32 = 1;
/// Its table is there.
pub const STATE_READY: u32 = 2;
/// It has none.
pub const STATE_NONE: u32 = 3;
/// It is memory that the kernel keeps as a file: shared, or of `memfd_create`.
pub const STATE_MEMORY: u32 = 4;
/// So many words are looked at for one such frame.
pub const SCANNED_WORDS: u32 = 512;
/// So many such frames one stack may have.
pub const SCANNED_FRAMES: u32 = 4;
/// How an interpreter keeps frames. Python: each has a call of the interpreter's loop to itself.
pub const CHAIN_SINGLE: u32 = 0;
/// Each call of the loop has a structure on the stack, which points at its frames.
pub const CHAIN_CFRAMES: u32 = 1;
/// The last frame of each call of the loop is on the stack and runs no code.
pub const CHAIN_ENTRY_FRAMES: u32 = 2;
/// PHP: the calls of the main thread, also of functions that are written in C.
pub const CHAIN_PHP: u32 = 3;
/// Ruby: the frames follow each other, also those of functions that are written in C.
pub const CHAIN_RUBY: u32 = 4;
/// Perl: lists of contexts, of which calls are one kind.
pub const CHAIN_PERL: u32 = 5;
/// In the place of an offset: there is no such member.
pub const NO_MEMBER: u32 = 0xffffffff;

/// An executable mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Its length in pages of 4 KiB; 0 for an unused entry.
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
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Number of the file; 0 for an unused entry.
    pub file: u32,
    /// Zero.
    pub zero: u32,
}

/// All such memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CopiedTexts {
    /// Each.
    pub all: [CopiedText; COPIED_TEXTS as usize],
}

/// What is known of a process' mappings.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Space {
    /// The kernel's address of its memory: another one after an exec.
    pub mm: u64,
    /// Changes with each life of a process and each change of its mappings.
    pub birth: u64,
    /// An address in a file with an interpreter that a stack led through; 0: none did.
    pub script: u64,
    /// How many mappings have been entered.
    pub entered: u32,
    /// Zero.
    pub zero: u32,
    /// By address: the mapping where one was found last.
    pub hints: [u8; HINTS as usize],
    /// The mappings, in no order.
    pub mappings: [Mapping; MAX_MAPPINGS as usize],
}

/// A rule that was looked up before. Walks on one processor may interrupt each other while they write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CachedRule {
    /// Place in the file, above [`FILE_BITS`] bits of the file's number, mixed with the rule; 0: none.
    pub mark: u64,
    /// The rule.
    pub rule: u64,
}

/// What a processor remembers of rules. Files' tables never change, so nothing here does.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RuleCache {
    /// The rules, by the tag's hash.
    pub rules: [CachedRule; CACHED_RULES as usize],
}

/// User memory that was copied for a walk.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Window {
    /// Where it is from; [`NO_WINDOW`]: there is none.
    pub begin: u64,
    /// The bytes, and room for a word that begins with the last of them.
    pub bytes: [u8; WINDOW_ROOM as usize],
}

/// What tells a file apart in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FileKey {
    /// Inode.
    pub inode: u64,
    /// Size: files that are written in place change it most of the time.
    pub size: u64,
    /// Device, as the kernel packs it.
    pub device: u32,
    /// Generation of the inode.
    pub generation: u32,
}

/// A stretch of a file that is code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// First byte in the file.
    pub begin: u64,
    /// One past the last byte.
    pub end: u64,
    /// What to add to a place in the file to get the stated address.
    pub delta: u64,
}

/// A file and where its table is: places are in bytes from the beginning of the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct File {
    /// One of the states.
    pub state: u32,
    /// Number of the chunk.
    pub chunk: u32,
    /// First address of the table's first page.
    pub base: u64,
    /// First address after the table, or after this piece of it.
    pub end: u64,
    /// Place of the rules.
    pub rules_at: u32,
    /// Place of the pages.
    pub pages_at: u32,
    /// Place of the rows.
    pub rows_at: u32,
    /// Number of pages.
    pub pages: u32,
    /// Number of rows.
    pub rows: u32,
    /// When it was used last, in about seconds.
    pub used: u32,
    /// Number of what has the next piece of the table; 0: this is the last.
    pub next: u32,
    /// Number of the layout of the interpreter's structures.
    pub layout: u32,
    /// Stated address of the state of the interpreter that is in the file; 0: there is none.
    pub script: u64,
    /// Code in the file; unused ones are empty.
    pub segments: [Segment; SEGMENTS as usize],
}

/// Where the members of an interpreter's structures are (`plumb_interpreters::Root`). What is said of Python's holds for those of others
/// that are alike: a frame is `zend_execute_data`, `rb_control_frame_t` or `PERL_CONTEXT`, code is `zend_function`, the body of an `rb_iseq_t`
/// or `XPVCV`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ScriptLayout {
    /// Which bits of the words of a code object don't change.
    pub identity: [u64; SCRIPT_IDENTITY_WORDS as usize],
    /// How frames are kept.
    pub chain: u32,
    /// `_PyRuntimeState`: the list of interpreters; of Ruby's ractor the list of threads, of Perl's interpreter its phase.
    pub interpreters: u32,
    /// The thread that has the lock; 0: it is not there. Of Ruby's ractor the context of that thread, of Perl's interpreter the statement
    /// that runs.
    pub current: u32,
    /// `PyInterpreterState`: the next one.
    pub interpreter_next: u32,
    /// Its threads; of Ruby's thread its context.
    pub threads: u32,
    /// `PyThreadState`: the next one.
    pub thread_next: u32,
    /// Its thread pointer; of Ruby's, where `thread_native` is not 0, of what that member points to.
    pub thread_id: u32,
    /// What leads to its frame.
    pub thread_frame: u32,
    /// `_PyCFrame`: its frame; [`NO_MEMBER`]: there is no such structure. Of the body of Perl's packages what leads to the name, unless that
    /// is behind their symbols.
    pub cframe_frame: u32,
    /// The next one further out; of Ruby's context its thread.
    pub cframe_previous: u32,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// Its code.
    pub frame_code: u32,
    /// Its caller.
    pub frame_caller: u32,
    /// Its instruction.
    pub frame_instruction: u32,
    /// Whether it is the last of its round: the byte ... Of Perl's lists of contexts what they are for.
    pub frame_entry: u32,
    /// ... and its bits that say so.
    pub frame_entry_bits: u32,
    /// Who owns it.
    pub frame_owner: u32,
    /// Bytes of a code object that are told.
    pub code_bytes: u32,
    /// `PyCodeObject`: the name of its file.
    pub code_file: u32,
    /// Its name.
    pub code_name: u32,
    /// Its table of lines; of PHP the class.
    pub code_lines: u32,
    /// Where the words begin that tell it from other code.
    pub code_identity: u32,
    /// `rb_thread_t.nt`; 0: there is no such member.
    pub thread_native: u32,
    /// Zero.
    pub zero: u32,
}
