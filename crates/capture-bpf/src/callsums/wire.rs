//! Definitions shared by the programs that aggregate system calls and their loader.
//!
//! `cargo run -p xtask -- codegen` turns this file into `bpf/callsums.h`, as it does `src/wire/`; the same rules hold.

/// Distinct system call numbers.
pub const SUM_NUMBERS: u32 = 512;
/// The number under which all other calls and those of 32-bit programs are counted.
pub const SUM_OTHERS: u32 = 511;
/// Buckets of a histogram of durations: one for each power of two, in nanoseconds.
pub const BUCKETS: u32 = 40;
/// Bytes kept of a string argument.
pub const TEXT_BYTES: u32 = 64;
/// The most sums beyond those kept for each call number.
pub const MAX_SUMS: u32 = 16384;
/// The most distinct errors of calls.
pub const MAX_ERRORS: u32 = 16384;

/// Calls are aggregated by number only.
pub const PER_CALL: u32 = 0;
/// Calls are aggregated by number and thread.
pub const PER_THREAD: u32 = 1;
/// Calls are aggregated by number and process.
pub const PER_PROCESS: u32 = 2;

/// Calls are aggregated by number and the file that the first argument is a descriptor of. Calls without such an argument are not
/// counted.
pub const PER_FILE: u32 = 3;

/// Calls are aggregated by process, and only their number and CPU time are counted: [`ProcessSum`].
pub const PER_PROCESS_ALONE: u32 = 4;
/// The default for the most such sums: as many as a thousand new processes a second leave in two seconds.
pub const MAX_PROCESS_SUMS: u32 = 65536;

/// Path components that are kept, from the path's end.
pub const PARTS: u32 = 8;
/// Bytes of one component, and of the name of a file system type.
pub const PART_BYTES: u32 = 32;
/// The most files whose names are kept.
pub const MAX_NAMES: u32 = 16384;

/// A process is counted from now on.
pub const COUNT_NOW: u32 = 1;
/// A process is counted from its next exec on.
pub const COUNT_FROM_EXEC: u32 = 2;

/// Bit of the properties of a call number: the call returns 0 in the child process too.
pub const CALL_FORKS: u32 = 1;
/// Bit of the properties of a call number: the first argument is a file descriptor.
pub const CALL_TAKES_FILE: u32 = 2;
/// The bits from this one on hold the number of the argument that is a string, counted from 1; 0: none.
pub const CALL_TEXT_SHIFT: u32 = 8;

/// Index of a counter: minor page faults.
pub const SUM_MINOR: u32 = 0;
/// Index of a counter: major page faults.
pub const SUM_MAJOR: u32 = 1;
/// Index of a counter: voluntary context switches, of threads that had to wait.
pub const SUM_VOLUNTARY: u32 = 2;
/// Index of a counter: involuntary context switches.
pub const SUM_INVOLUNTARY: u32 = 3;
/// Index of a counter: threads that have ended.
pub const SUM_ENDED: u32 = 4;
/// Index of a counter: calls for which there was no space.
pub const SUM_LOST: u32 = 5;

/// The key under which calls are aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SumKey {
    /// System call number.
    pub number: u32,
    /// Thread, process, or the file's device; 0: all.
    pub who: u32,
    /// The file's inode; 0: all.
    pub file: u64,
}

/// A system call number in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ProcessCall {
    /// System call number.
    pub number: u32,
    /// Process.
    pub pid: u32,
    /// Start time of the process, in nanoseconds since boot.
    pub start_ns: u64,
}

/// Aggregated calls of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ProcessSum {
    /// Number of calls that ended.
    pub calls: u64,
    /// Sum of their durations without the time off the CPU, in nanoseconds. A call adds nothing if its beginning was missed.
    pub cpu_ns: u64,
}

/// The file that a name belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NameKey {
    /// Inode.
    pub file: u64,
    /// Device.
    pub device: u32,
    /// Zero.
    pub zero: u32,
}

/// A path component, terminated by a zero if shorter than the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Part {
    /// The text.
    pub text: [u8; PART_BYTES as usize],
}

/// The name of a file within its file system, from the last component on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Name {
    /// Type of the file system.
    pub system: Part,
    /// Path components, the last first. An empty component or `/` ends the path.
    pub parts: [Part; PARTS as usize],
}

/// An error returned by a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ErrorKey {
    /// The aggregated call.
    pub sum: SumKey,
    /// Error number.
    pub error: u32,
    /// Zero.
    pub zero: u32,
}

/// Aggregated calls.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sum {
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that failed.
    pub failed: u64,
    /// Sum of the positive return values.
    pub given: u64,
    /// Number of calls whose beginning was seen too. The fields below cover only these.
    pub timed: u64,
    /// Sum of the durations from begin to end, in nanoseconds.
    pub wall_ns: u64,
    /// Part of `wall_ns` during which the thread was blocked.
    pub blocked_ns: u64,
    /// Part of `wall_ns` during which the thread was preempted: runnable, but another thread had the CPU.
    pub preempted_ns: u64,
    /// Part of `wall_ns` during which the thread had been woken and waited for a CPU.
    pub queued_ns: u64,
    /// Duration of the longest call, in nanoseconds.
    pub longest_ns: u64,
    /// End time of the longest call, by the monotonic clock.
    pub longest_end_ns: u64,
    /// Return value of the longest call.
    pub longest_result: i64,
    /// Arguments of the longest call.
    pub longest_args: [u64; 6],
    /// Process of the longest call.
    pub longest_pid: u32,
    /// Thread of the longest call.
    pub longest_tid: u32,
    /// The longest call's string argument, terminated by a zero if shorter than the array.
    pub longest_text: [u8; TEXT_BYTES as usize],
    /// Histogram: bucket n counts the calls that lasted from 2ⁿ nanoseconds up to twice that.
    pub buckets: [u64; BUCKETS as usize],
}

/// The state of a thread in a system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct InCall {
    /// Begin of the call; 0: the thread is in no call.
    pub begin_ns: u64,
    /// Time at which the thread left the CPU; 0: it is on a CPU.
    pub out_ns: u64,
    /// Time at which the thread became runnable; 0: it is blocked.
    pub woken_ns: u64,
    /// Time blocked in this call so far, in nanoseconds.
    pub blocked_ns: u64,
    /// Time preempted in this call so far, in nanoseconds.
    pub preempted_ns: u64,
    /// Time spent in this call waiting for a CPU after a wakeup, in nanoseconds.
    pub queued_ns: u64,
    /// Whether the thread was runnable when it was switched out.
    pub was_preempted: u64,
}

/// The kernel's counters of a thread at the moment from which the thread is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Before {
    /// Minor page faults.
    pub minor: u64,
    /// Major page faults.
    pub major: u64,
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
}
