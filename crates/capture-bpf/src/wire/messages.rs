//! Messages of the ring: what the programs send.
//!
//! A message of the kind `MESSAGE_TIME_OFF` is a `TimeOff`, and so on; each begins with a [`Head`]. The reader of them is made of this.

/// Bytes of a code object that are told.
pub const CODE_BYTES: u32 = 240;
/// Bytes of its name, with what is before the text.
pub const NAME_BYTES: u32 = 256;
/// Bytes of the name of its file, likewise.
pub const FILE_BYTES: u32 = 384;
/// Bytes of its table of lines, likewise.
pub const LINES_BYTES: u32 = 2048;
/// Words that lead from code to names: two for each.
pub const LINK_WORDS: u32 = 32;
/// Kind of a message: a sample with its stack.
pub const MESSAGE_SAMPLE: u32 = 1;
/// Kind of a message: a table is wanted.
pub const MESSAGE_WANT: u32 = 2;
/// Kind of a message: how much processor time a task has used.
pub const MESSAGE_SPENT: u32 = 3;
/// Kind of a message: memory that says what code is called.
pub const MESSAGE_CODE: u32 = 4;
/// Kind of a message: a time off the processor.
pub const MESSAGE_TIME_OFF: u32 = 5;
/// Kind of a message: which system call a sample was in that is handed over.
pub const MESSAGE_HANDED_OVER: u32 = 6;
/// Kind of a message: the user registers of a sample.
pub const MESSAGE_REGISTERS: u32 = 7;
/// Kind of a message: the control group of a process that ends.
pub const MESSAGE_IN_CGROUP: u32 = 8;
/// Most bytes of a control group's names.
pub const CGROUP_BYTES: u32 = 1024;
/// Groups with a name of no more bytes, with its zero, are not told of.
pub const CGROUP_LONG: u32 = 32;
/// A processor's samples of user code come with their registers no more often than that, in nanoseconds.
pub const REGISTERS_INTERVAL_NS: u64 = 4000000;
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
/// Bit of a user frame: it was found by the frame-pointer convention.
pub const FRAME_ASSUMED: u64 = 0x1000000000000000;
/// Bit of a script frame's code: it is the last of its round of the interpreter's loop.
pub const SCRIPT_ENTRY: u64 = 1;
/// Bit of a script frame's code: it belongs to a generator.
pub const SCRIPT_GENERATOR: u64 = 2;
/// Bit of what is in the place of a script frame's code: it is where a round of the interpreter's loop has its structure. What
/// follows it is 1 if its frames come before it, and 0 if they come after it.
pub const SCRIPT_ROUND: u64 = 4;

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
    /// Where its table of lines is, or the name of its class or package.
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
    /// Used words of `links`.
    pub link_words: u32,
    /// Words that led from the code to these names: where each was, and the word.
    pub links: [u64; LINK_WORDS as usize],
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

/// The control group of a process that ends: names of it and those around it follow, innermost first, each with a zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct InCgroup {
    /// The head.
    pub head: Head,
    /// Bytes of the names.
    pub bytes: u32,
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

/// The user registers of a sample that interrupted 64-bit user code, and was not handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// The head.
    pub head: Head,
    /// The instruction that was about to run.
    pub ip: u64,
    /// By DWARF number (System V ABI for x86-64, figure 3.36).
    pub values: [u64; 16],
    /// Number of the event that took the sample.
    pub event: u32,
    /// Zero.
    pub zero: u32,
}

/// A time that a thread was off the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeOff {
    /// The head.
    pub head: Head,
    /// Its stack's key; [`OFF_COPY`](super::OFF_COPY): a record with a copy follows.
    pub key: u64,
    /// Since when, by the monotonic clock; where a record follows, a time just before that.
    pub out_ns: u64,
    /// How long it could not run.
    pub blocked_ns: u64,
    /// How long it then could, and did not.
    pub waited_ns: u64,
}
