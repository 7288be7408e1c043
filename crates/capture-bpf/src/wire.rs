//! What the programs in the kernel and the recorder share: maps' keys and values, and the messages of the ring.
//!
//! `cargo run -p xtask -- codegen` turns this file into `bpf/wire.h`; CI checks that it did. So there are only
//! constants and `#[repr(C)]` structures of integers, arrays of them and each other here, without hidden padding.

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
/// Distinct stacks that are counted at one time.
pub const MAX_COUNTS: u32 = 16384;
/// The most frames of an interpreted program in a stack.
pub const MAX_SCRIPT_FRAMES: u32 = 1024;
/// Places in which it is remembered which code was told of; a power of two.
pub const TOLD: u32 = 16384;
/// Bytes of a code object that are told.
pub const CODE_BYTES: u32 = 240;
/// The most bytes of a frame of a Python program that are read.
pub const PYTHON_FRAME_BYTES: u32 = 112;
/// Words of a code object that it is told from others by.
pub const PYTHON_IDENTITY_WORDS: u32 = 16;
/// Layouts of the structures of Python that can be known at one time.
pub const MAX_LAYOUTS: u32 = 64;
/// Bytes of its name, with what is before the text.
pub const NAME_BYTES: u32 = 256;
/// Bytes of the name of its file, likewise.
pub const FILE_BYTES: u32 = 384;
/// Bytes of its table of lines, likewise.
pub const LINES_BYTES: u32 = 2048;

/// Bytes of a task's name, with a zero at its end.
pub const COMM_BYTES: u32 = 16;
/// Rules that each processor remembers; a power of two.
pub const CACHED_RULES: u32 = 8192;
/// Bytes of user memory that are copied at once; a power of two.
pub const WINDOW_BYTES: u32 = 1024;
/// The same, and a word more.
pub const WINDOW_ROOM: u32 = 1032;
/// Samples that a processor can be making at one time, as one interrupts another.
pub const DRAFTS: u32 = 2;
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

/// Kind of a message: a sample with its stack.
pub const MESSAGE_SAMPLE: u32 = 1;
/// Kind of a message: a table is wanted.
pub const MESSAGE_WANT: u32 = 2;

/// Kind of a message: how much processor time a task has used.
pub const MESSAGE_SPENT: u32 = 3;

/// Kind of a message: memory that says what code is called.
pub const MESSAGE_CODE: u32 = 4;

/// Kind of a message: a time off the processor.
pub const MESSAGE_OFF: u32 = 5;

/// Kind of a message: which system call a sample was in that is handed over.
pub const MESSAGE_CALL: u32 = 6;

/// It was used until the task exec'd.
pub const UNTIL_EXEC: u32 = 0;
/// It was used until the task's end.
pub const UNTIL_END: u32 = 1;

/// Flag of a sample: it was taken in the kernel.
pub const SAMPLE_IN_KERNEL: u32 = 1;
/// Flag of a sample: the task has no user part by nature.
pub const SAMPLE_NO_USER: u32 = 2;
/// Flag of a sample: there are more frames of the interpreted program than were sent.
pub const SAMPLE_SCRIPT_CUT: u32 = 4;
/// Flag of a sample: it is none, but the stack of times off the processor. Its key is even: blocked times are counted by it, and
/// times waited by the next number.
pub const SAMPLE_STACK_ONLY: u32 = 8;
/// Flag of a sample: it is none, but the script frames of one of which a record will be written. Before those of each round of an
/// interpreter's loop comes where that is on the stack, with [`SCRIPT_ROUND`].
pub const SAMPLE_SCRIPT_ONLY: u32 = 16;
/// No system call was interrupted: the task was in user code, or in the kernel for a fault or an interrupt.
pub const NO_CALL: u32 = 0xffffffff;
/// Bit of a user frame: it is no return address.
pub const FRAME_NO_RETURN: u64 = 0x8000000000000000;
/// Bit of a user frame: a round of an interpreter's loop.
pub const FRAME_LOOP: u64 = 0x4000000000000000;
/// Bit of a user frame: it was found by scanning the stack.
pub const FRAME_SCANNED: u64 = 0x2000000000000000;
/// So many words are looked at for one such frame.
pub const SCANNED_WORDS: u32 = 512;
/// So many such frames one stack may have.
pub const SCANNED_FRAMES: u32 = 4;

/// How Python keeps frames: each has a call of the interpreter's loop to itself.
pub const PYTHON_SINGLE: u32 = 0;
/// Each call of the loop has a structure on the stack, which points at its frames.
pub const PYTHON_CFRAMES: u32 = 1;
/// The last frame of each call of the loop is on the stack and runs no code.
pub const PYTHON_ENTRY_FRAMES: u32 = 2;
/// In the place of an offset: there is no such member.
pub const PYTHON_NONE: u32 = 0xffffffff;

/// Bit of a script frame's code: it is the last of its round of the interpreter's loop.
pub const SCRIPT_ENTRY: u64 = 1;
/// Bit of a script frame's code: it belongs to a generator.
pub const SCRIPT_GENERATOR: u64 = 2;
/// Bit of what is in the place of a script frame's code: it is where a round of the interpreter's loop has its structure. What
/// follows it is 1 if its frames come before it, and 0 if they come after it.
pub const SCRIPT_ROUND: u64 = 4;

/// Index of a counter: samples of tasks that are not followed.
pub const COUNTER_OTHERS: u32 = 0;
/// Index of the first counter of samples handed over, by [why](WHY_UNMAPPED), and of those that were not.
pub const COUNTER_WHY: u32 = 0;
/// Number of counters that each object has.
pub const COUNTERS: u32 = 20;

/// Why a sample is handed over: an address in no mapping that is known (yet).
pub const WHY_UNMAPPED: u32 = 1;
/// Code in memory without a file.
pub const WHY_ANONYMOUS: u32 = 2;
/// The file's table is not there (yet).
pub const WHY_NO_TABLE: u32 = 3;
/// A rule that the program does not know.
pub const WHY_ODD: u32 = 4;
/// Stack memory that can't be read.
pub const WHY_UNREADABLE: u32 = 5;
/// A stack that does not advance.
pub const WHY_NOT_ADVANCING: u32 = 6;
/// Too many frames.
pub const WHY_TOO_DEEP: u32 = 7;
/// The process is in the middle of an exec.
pub const WHY_EXEC: u32 = 8;
/// A frame pointer that is not known.
pub const WHY_NO_REGISTER: u32 = 9;
/// No why: the stack's root was reached.
pub const WHY_ROOT: u32 = 10;
/// The ring is full.
pub const WHY_RING_FULL: u32 = 11;
/// It interrupts so many others that there is no room for it.
pub const WHY_NESTED: u32 = 12;

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

/// What the recorder tells the programs while they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// Whether only followed processes are sampled.
    pub follows_some: u32,
    /// Whether samples count. Before, stacks are walked only to learn which tables are wanted.
    pub began: u32,
    /// Whether it is looked at who is off the processor.
    pub off_cpu: u32,
}

/// Places that can be watched at one time.
pub const MAX_PLACES: u32 = 64;
/// Samples that there may be at once of a place each passing of which is one.
pub const PLACE_BURST: u64 = 1000;
/// Flag of a place: only what runs while its copier does is sampled, which is the kernel's to decide.
pub const PLACE_SCOPED: u32 = 1;
/// Flag of a place: its samples have kernel stacks.
pub const PLACE_IN_KERNEL: u32 = 2;
/// Flag of a place: each passing is a sample only as long as these are few.
pub const PLACE_LIMITED: u32 = 4;
/// Flag of a place: it is watched no more.
pub const PLACE_OVER: u32 = 8;

/// A place whose passing is an event: a tracepoint, or an instruction of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// A sample each so many times, on each processor; 0: by time.
    pub period: u64,
    /// By time: nanoseconds between two samples of a processor.
    pub interval_ns: u64,
    /// Samples so far, where they are limited.
    pub samples: u64,
    /// When the first of them was.
    pub first_ns: u64,
    /// Number of the system call that alone counts, or [`NO_CALL`].
    pub call: u32,
    /// Flags.
    pub flags: u32,
}

/// What a processor knows of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tally {
    /// How often it was passed.
    pub passed: u64,
    /// How often since the last sample.
    pub since: u64,
    /// By time: after how many the next sample is due.
    pub gap: u64,
    /// By time: when the last sample was.
    pub last_ns: u64,
    /// Samples that could neither be walked nor copied.
    pub lost: u64,
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
    /// Number of the layout of Python's structures.
    pub layout: u32,
    /// Stated address of the state of the Python that is in the file; 0: there is none.
    pub python: u64,
    /// Code in the file; unused ones are empty.
    pub segments: [Segment; SEGMENTS as usize],
}

/// Where the members of the structures of CPython are (`plumb_interpreters::python::PythonLayout`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PythonLayout {
    /// Which bits of the words of a code object don't change.
    pub identity: [u64; PYTHON_IDENTITY_WORDS as usize],
    /// How frames are kept.
    pub chain: u32,
    /// `_PyRuntimeState`: the list of interpreters.
    pub interpreters: u32,
    /// The thread that has the lock; 0: it is not there.
    pub current: u32,
    /// `PyInterpreterState`: the next one.
    pub interpreter_next: u32,
    /// Its threads.
    pub threads: u32,
    /// `PyThreadState`: the next one.
    pub thread_next: u32,
    /// Its thread pointer.
    pub thread_id: u32,
    /// What leads to its frame.
    pub thread_frame: u32,
    /// `_PyCFrame`: its frame; [`PYTHON_NONE`]: there is no such structure.
    pub cframe_frame: u32,
    /// The next one further out.
    pub cframe_previous: u32,
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// Its code.
    pub frame_code: u32,
    /// Its caller.
    pub frame_caller: u32,
    /// Its instruction.
    pub frame_instruction: u32,
    /// Whether it is the last of its round.
    pub frame_entry: u32,
    /// Who owns it.
    pub frame_owner: u32,
    /// Bytes of a code object that are told.
    pub code_bytes: u32,
    /// `PyCodeObject`: the name of its file.
    pub code_file: u32,
    /// Its name.
    pub code_name: u32,
    /// Its table of lines.
    pub code_lines: u32,
}

/// The head of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// What message it is.
    pub kind: u32,
    /// Number of the processor.
    pub cpu: u32,
    /// When, by the monotonic clock.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// A sample. User frames follow, innermost first, then kernel frames likewise, eight bytes each, then script frames likewise:
/// where the code is, with bits that tell more, and above the offset of the instruction from there the code's identity in 32
/// bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    /// The head.
    pub head: Head,
    /// What the sample counts.
    pub period: u64,
    /// Its stack's key in the counts; 0 if it is not counted there.
    pub key: u64,
    /// Number of user frames.
    pub user: u32,
    /// Number of kernel frames.
    pub kernel: u32,
    /// Flags.
    pub flags: u32,
    /// Number of script frames.
    pub script: u32,
    /// Which of the sampled events it is of: what the program was attached to that with.
    pub event: u32,
    /// Number of the system call that it interrupted in the kernel, or [`NO_CALL`].
    pub call: u32,
}

/// A table is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Want {
    /// The head.
    pub head: Head,
    /// An address in the file, in that process.
    pub address: u64,
    /// Number of the file.
    pub file: u32,
    /// Zero.
    pub zero: u32,
}

/// Memory that says what code of an interpreted program is called, as it was when the code was seen first: of each part so
/// much from the beginning as could be read.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Code {
    /// The head.
    pub head: Head,
    /// Where the code object is.
    pub at: u64,
    /// Where its name is.
    pub name_at: u64,
    /// Where the name of its file is.
    pub file_at: u64,
    /// Where its table of lines is.
    pub lines_at: u64,
    /// What tells it from other code in its place.
    pub identity: u32,
    /// Bytes of the code object that could be read.
    pub code_bytes: u32,
    /// Of its name.
    pub name_bytes: u32,
    /// Of the name of its file.
    pub file_bytes: u32,
    /// Of its table of lines.
    pub lines_bytes: u32,
    /// Zero.
    pub zero: u32,
    /// The code object.
    pub code: [u8; CODE_BYTES as usize],
    /// Its name.
    pub name: [u8; NAME_BYTES as usize],
    /// The name of its file.
    pub file: [u8; FILE_BYTES as usize],
    /// Its table of lines.
    pub lines: [u8; LINES_BYTES as usize],
}

/// How much processor time a task has used since it was forked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Spent {
    /// The head.
    pub head: Head,
    /// The time, as the scheduler accounts it.
    pub runtime_ns: u64,
    /// Until when.
    pub until: u32,
    /// Zero.
    pub zero: u32,
}

/// A sample was taken in the kernel, and its record follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct HandedOver {
    /// The head.
    pub head: Head,
    /// Number of the system call, or [`NO_CALL`].
    pub call: u32,
    /// Zero.
    pub zero: u32,
}

/// What is counted: one stack of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CountKey {
    /// The stack and the life of the process.
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// How often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Count {
    /// Samples since the one that was sent.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// When the last of them was.
    pub time_ns: u64,
}

/// Threads that may be off the processor at one time.
pub const MAX_OFF: u32 = 65536;
/// Index of a counter: times off that were too short to count.
pub const OFF_SHORT: u32 = 16;
/// Their sum, in nanoseconds.
pub const OFF_SHORT_NS: u32 = 17;
/// Times off that found no room.
pub const OFF_LOST: u32 = 18;
/// Their sum, in nanoseconds.
pub const OFF_LOST_NS: u32 = 19;

/// Key of what no stack is looked for of.
pub const OFF_NO_STACK: u64 = 0;
/// Key of a stack that can't be walked: it is to be copied, or was.
pub const OFF_COPY: u64 = 1;
/// Key of the stack that a thread had when the recording began: it was off the processor already.
pub const OFF_SINCE_BEGIN: u64 = 2;
/// Kernel frames of such a stack.
pub const OFF_KERNEL_FRAMES: u32 = 64;
/// Such a thread can run and waits for a processor.
pub const OFF_RUNNABLE: u32 = 1;
/// Such a thread has 64-bit user code.
pub const OFF_HAS_USER: u32 = 2;
/// Such a thread has 32-bit user code.
pub const OFF_HAS_USER_32: u32 = 4;
/// Bits of the time, in nanoseconds, in which so many stacks are taken at most.
pub const PACE_BITS: u32 = 27;
/// The shortest interval between two stacks, in nanoseconds off the processor.
pub const PACE_FIRST: u64 = 1024;
/// The longest.
pub const PACE_LAST: u64 = 1073741824;

/// A thread that was off the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Off {
    /// Since when, by the monotonic clock; 0: it no longer is.
    pub out_ns: u64,
    /// Since when it could run; 0: it can't, or that is not known.
    pub woken_ns: u64,
    /// For how long it had waited for a processor ever, by the scheduler's account.
    pub delay_ns: u64,
    /// Its stack's key.
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// Zero.
    pub zero: u32,
}

/// A time that a thread was off the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeOff {
    /// The head.
    pub head: Head,
    /// Its stack's key; [`OFF_COPY`]: a record with a copy follows.
    pub key: u64,
    /// Since when, by the monotonic clock; where a record follows, a time just before that.
    pub out_ns: u64,
    /// How long it could not run.
    pub blocked_ns: u64,
    /// How long it then could, and did not.
    pub waited_ns: u64,
}

/// A thread that was off the processor when the recording began, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct OffThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When it was looked at, by the monotonic clock.
    pub time_ns: u64,
    /// `OFF_RUNNABLE` and the others.
    pub flags: u32,
    /// How many of `kernel` there are.
    pub kernel_frames: u32,
    /// Where user code goes on.
    pub ip: u64,
    /// The user's general registers, by DWARF number (System V ABI for x86_64, figure 3.36).
    pub registers: [u64; 16],
    /// Kernel frames, innermost first.
    pub kernel: [u64; OFF_KERNEL_FRAMES as usize],
}

/// How stacks are taken on a processor: each time, as long as there are few times, then so that they lie evenly in the time off the
/// processor. What is shorter than the interval between them is added up, time blocked and time waited apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pace {
    /// When the window began in which they are counted.
    pub since_ns: u64,
    /// When the last one was taken.
    pub last_ns: u64,
    /// When the processor was given to the thread that comes back next; 0: nobody told.
    pub switched_ns: u64,
    /// The interval, in nanoseconds; 0: each time.
    pub interval: u64,
    /// What was added up since the last one.
    pub sums: [u64; 2],
    /// At which sum the next one is due.
    pub gaps: [u64; 2],
    /// Stacks in the window.
    pub stacks: u32,
    /// Zero.
    pub zero: u32,
}

/// Threads whose times are kept one by one.
pub const MAX_THREADS: u32 = 16384;
/// Index of a counter: system calls that have returned.
pub const STAT_CALLS: u32 = 0;
/// Samples that interrupted user code.
pub const STAT_USER: u32 = 1;
/// Samples that interrupted the kernel.
pub const STAT_KERNEL: u32 = 2;
/// Threads whose times found no room.
pub const STAT_LOST: u32 = 3;
/// The sum of these times, in nanoseconds.
pub const STAT_LOST_NS: u32 = 4;

/// A thread that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ThreadKey {
    /// Its number.
    pub tid: u32,
    /// What it was called at its end, ending in zeros.
    pub comm: [u8; COMM_BYTES as usize],
}

/// What threads of one number and name have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadTime {
    /// Processor time, as the scheduler accounts it.
    pub runtime_ns: u64,
    /// How many threads that were.
    pub threads: u64,
}

/// Index of a counter: page faults that found no room.
pub const FAULTS_DROPPED: u32 = 0;

/// A page fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Fault {
    /// When, by the monotonic clock.
    pub time_ns: u64,
    /// Where.
    pub address: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}
