//! Messages that the programs send through the ring.
//!
//! A message of the kind `MESSAGE_TIME_OFF` is a `TimeOff`, and so on; each begins with a [`Head`]. The reader is generated from this
//! file.

/// Bytes of a code object that are sent.
pub const CODE_BYTES: u32 = 240;
/// Bytes of a code object's name, including what precedes the text.
pub const NAME_BYTES: u32 = 256;
/// Bytes of a code object's file name, including what precedes the text.
pub const FILE_BYTES: u32 = 384;
/// Bytes of a code object's line table, including what precedes it.
pub const LINES_BYTES: u32 = 2048;
/// Words of pointers that lead from code to names: two words for each pointer.
pub const LINK_WORDS: u32 = 32;
/// Kind of a message: a sample with its stack.
pub const MESSAGE_SAMPLE: u32 = 1;
/// Kind of a message: a request for a table.
pub const MESSAGE_WANT: u32 = 2;
/// Kind of a message: the CPU time that a task has used.
pub const MESSAGE_SPENT: u32 = 3;
/// Kind of a message: the memory that names a code object.
pub const MESSAGE_CODE: u32 = 4;
/// Kind of a message: a time off the CPU.
pub const MESSAGE_TIME_OFF: u32 = 5;
/// Kind of a message: the system call in which a sample was taken whose record the kernel writes.
pub const MESSAGE_HANDED_OVER: u32 = 6;
/// Kind of a message: the user registers of a sample.
pub const MESSAGE_REGISTERS: u32 = 7;
/// Room for the general user registers of a sample, or of a thread off the CPU: those that DWARF numbers from 0 on aarch64, with the stack pointer.
/// x86_64 has half as many.
pub const USER_REGISTERS: u32 = 32;
/// Kind of a message: the control group of a process that exits.
pub const MESSAGE_IN_CGROUP: u32 = 8;
/// The most bytes of a control group's names.
pub const CGROUP_BYTES: u32 = 1024;
/// A control group is reported only if its name, with the terminating zero, is longer than this.
pub const CGROUP_LONG: u32 = 32;
/// Shortest interval between two samples of user code on a CPU that are sent with their registers, in nanoseconds.
pub const REGISTERS_INTERVAL_NS: u64 = 4000000;
/// Value of [`Spent::until`]: the CPU time was used before an exec.
pub const UNTIL_EXEC: u32 = 0;
/// Value of [`Spent::until`]: the CPU time was used before the task's end.
pub const UNTIL_END: u32 = 1;
/// Flag of a sample: it was taken in the kernel.
pub const SAMPLE_IN_KERNEL: u32 = 1;
/// Flag of a sample: the task has no user stack, because it is a kernel thread or has no memory.
pub const SAMPLE_NO_USER: u32 = 2;
/// Flag of a sample: its script frames are truncated.
pub const SAMPLE_SCRIPT_CUT: u32 = 4;
/// Flag of a sample: it is not a sample but the stack of times off the CPU. Its key is even: blocked times are counted under the key,
/// run-queue waits under the key plus one.
pub const SAMPLE_STACK_ONLY: u32 = 8;
/// Flag of a sample: it holds only the script frames of a sample whose record the kernel writes. The frames of each run of the
/// evaluation loop are preceded by its position on the stack, marked with [`SCRIPT_ROUND`].
pub const SAMPLE_SCRIPT_ONLY: u32 = 16;
/// No system call was interrupted: the task was in user code, or in the kernel for a fault or an interrupt.
pub const NO_CALL: u32 = 0xffffffff;
/// Bit of a user frame: the address is not a return address.
pub const FRAME_NO_RETURN: u64 = 0x8000000000000000;
/// Bit of a user frame: the frame is an interpreter's evaluation loop.
pub const FRAME_LOOP: u64 = 0x4000000000000000;
/// Bit of a user frame: the frame was found by scanning the stack.
pub const FRAME_SCANNED: u64 = 0x2000000000000000;
/// Bit of a user frame: the frame was found by the frame-pointer convention.
pub const FRAME_ASSUMED: u64 = 0x1000000000000000;
/// Bit of a script frame's code: the frame is the outermost one of its run of the evaluation loop.
pub const SCRIPT_ENTRY: u64 = 1;
/// Bit of a script frame's code: the frame belongs to a generator.
pub const SCRIPT_GENERATOR: u64 = 2;
/// Bit set in a word that replaces a script frame's code: the word is the address of a structure of a run of the evaluation loop. The
/// word after it is 1 if the frames of the run come before it, and 0 if they come after it.
pub const SCRIPT_ROUND: u64 = 4;

/// The head of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// Kind of the message: one of the `MESSAGE_` constants.
    pub kind: u32,
    /// CPU number.
    pub cpu: u32,
    /// Time, by the monotonic clock.
    pub time_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// A sample. Its user frames follow, then its kernel frames, then its script frames, each innermost first. User and kernel frames have
/// one word of eight bytes. Script frames have two: the address of the code with flag bits, then the code's identity in the upper 32
/// bits and the offset of the instruction in the lower ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    /// The head.
    pub head: Head,
    /// Period of the sample: the events that it represents.
    pub period: u64,
    /// Key of its stack in the counts; 0 if it is not counted there.
    pub key: u64,
    /// Number of user frames.
    pub user: u32,
    /// Number of kernel frames.
    pub kernel: u32,
    /// Flags.
    pub flags: u32,
    /// Number of script frames.
    pub script: u32,
    /// Number of the sampled event: the cookie that the program was attached with.
    pub event: u32,
    /// Number of the system call that it interrupted in the kernel, or [`NO_CALL`].
    pub call: u32,
}

/// A request for a file's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Want {
    /// The head.
    pub head: Head,
    /// An address of the file's mapping in that process.
    pub address: u64,
    /// Number of the file.
    pub file: u32,
    /// Zero.
    pub zero: u32,
}

/// The memory that names a code object of an interpreted program, read when the code was first seen. Each part may be truncated where
/// memory could not be read.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Code {
    /// The head.
    pub head: Head,
    /// Address of the code object.
    pub at: u64,
    /// Address of the name.
    pub name_at: u64,
    /// Address of the file name.
    pub file_at: u64,
    /// Address of the line table, or of the name of the class or package.
    pub lines_at: u64,
    /// Hash that distinguishes the code from other code at the same address.
    pub identity: u32,
    /// Bytes of the code object that could be read.
    pub code_bytes: u32,
    /// Bytes of the name that could be read.
    pub name_bytes: u32,
    /// Bytes of the file name that could be read.
    pub file_bytes: u32,
    /// Bytes of the line table that could be read.
    pub lines_bytes: u32,
    /// Used words of `links`.
    pub link_words: u32,
    /// Pointers that lead from the code to these names: the address of each, then its value.
    pub links: [u64; LINK_WORDS as usize],
    /// The code object.
    pub code: [u8; CODE_BYTES as usize],
    /// The code's name.
    pub name: [u8; NAME_BYTES as usize],
    /// The name of the code's file.
    pub file: [u8; FILE_BYTES as usize],
    /// The code's line table.
    pub lines: [u8; LINES_BYTES as usize],
}

/// The CPU time that a task has used since it was forked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Spent {
    /// The head.
    pub head: Head,
    /// CPU time in nanoseconds, as the scheduler accounts it.
    pub runtime_ns: u64,
    /// End of the counted time: [`UNTIL_EXEC`] or [`UNTIL_END`].
    pub until: u32,
    /// Zero.
    pub zero: u32,
}

/// The control group of a process that exits. The names of the group and its ancestors follow, innermost first, each with a terminating
/// zero.
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

/// A sample that was taken in the kernel and whose record, written by the kernel, follows.
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

/// The user registers of a sample that interrupted 64-bit user code and whose record the kernel does not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// The head.
    pub head: Head,
    /// Address of the next instruction.
    pub ip: u64,
    /// General registers, by DWARF number: as many as the architecture has.
    pub values: [u64; USER_REGISTERS as usize],
    /// Number of the event that took the sample.
    pub event: u32,
    /// Zero.
    pub zero: u32,
}

/// A time that a thread spent off the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeOff {
    /// The head.
    pub head: Head,
    /// Key of its stack; [`OFF_COPY`](super::OFF_COPY): a record with a copy follows.
    pub key: u64,
    /// Begin of the time, by the monotonic clock. If a record follows, a moment just before that record instead.
    pub out_ns: u64,
    /// Time blocked, in nanoseconds.
    pub blocked_ns: u64,
    /// Run-queue wait, in nanoseconds: the thread could run and did not.
    pub waited_ns: u64,
}
