//! Sampling and counting in the kernel: the recorder's instructions, watched places, stacks, and times off the CPU.

use super::USER_REGISTERS;

/// Distinct stacks that can be counted at one time.
pub const MAX_COUNTS: u32 = 16384;
/// Samples that a CPU can be taking at one time, when one interrupts another.
pub const DRAFTS: u32 = 2;
/// Index of a counter: samples of tasks that are not followed.
pub const COUNTER_OTHERS: u32 = 0;
/// Index of the first counter of samples by [outcome](WHY_UNMAPPED): handed over to the kernel for one of these reasons, or walked.
pub const COUNTER_WHY: u32 = 0;
/// Number of counters that each object has.
pub const COUNTERS: u32 = 20;
/// Reason for handing a sample over: an address outside the mappings known so far.
pub const WHY_UNMAPPED: u32 = 1;
/// Reason: code in memory that no file backs.
pub const WHY_ANONYMOUS: u32 = 2;
/// Reason: the file's table is not loaded (yet).
pub const WHY_NO_TABLE: u32 = 3;
/// Reason: a rule that the program does not support.
pub const WHY_ODD: u32 = 4;
/// Reason: stack memory that cannot be read.
pub const WHY_UNREADABLE: u32 = 5;
/// Reason: a stack that does not advance.
pub const WHY_NOT_ADVANCING: u32 = 6;
/// Reason: too many frames.
pub const WHY_TOO_DEEP: u32 = 7;
/// Reason: the process is in the middle of an exec.
pub const WHY_EXEC: u32 = 8;
/// Reason: the value of the frame pointer is unknown.
pub const WHY_NO_REGISTER: u32 = 9;
/// Not a reason: the walk reached the stack's root.
pub const WHY_ROOT: u32 = 10;
/// Reason: the ring is full.
pub const WHY_RING_FULL: u32 = 11;
/// Reason: the sample interrupts too many others, so that no draft is free.
pub const WHY_NESTED: u32 = 12;

/// Instructions of the recorder to the running programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// Calls that began before this time belong to an earlier run of the programs, and their end was not seen.
    pub since_ns: u64,
    /// Whether only followed processes are sampled.
    pub follows_some: u32,
    /// Whether samples count. Until then stacks are walked only to find out which tables are wanted.
    pub began: u32,
    /// Whether times off the CPU are recorded.
    pub off_cpu: u32,
    /// Whether the recording is ending: the stack of every thread that is off the CPU and has none yet is taken, however short its time
    /// off is.
    pub ends: u32,
}

/// Places that can be watched at one time.
pub const MAX_PLACES: u32 = 64;
/// Initial burst of a limited place: hits that all become samples.
pub const PLACE_BURST: u64 = 1000;
/// Flag of a place: only code that runs while its copier does is sampled; the kernel decides that.
pub const PLACE_SCOPED: u32 = 1;
/// Flag of a place: its samples have kernel stacks.
pub const PLACE_IN_KERNEL: u32 = 2;
/// Flag of a place: every hit is a sample only while hits are rare.
pub const PLACE_LIMITED: u32 = 4;
/// Flag of a place: watching it has ended.
pub const PLACE_OVER: u32 = 8;

/// A probe, whose hits are an event: a tracepoint, or an instruction of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Place {
    /// Hits per sample, on each CPU; 0: sample by time.
    pub period: u64,
    /// Sampling by time: nanoseconds between two samples of a CPU.
    pub interval_ns: u64,
    /// Samples so far, if they are limited.
    pub samples: u64,
    /// Time of the first of these samples.
    pub first_ns: u64,
    /// Number of the only system call whose hits count, or [`NO_CALL`](super::NO_CALL).
    pub call: u32,
    /// `PLACE_` flags.
    pub flags: u32,
}

/// The counters of a place on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Tally {
    /// Number of hits.
    pub passed: u64,
    /// Hits since the last sample.
    pub since: u64,
    /// Sampling by time: hits until the next sample is due.
    pub gap: u64,
    /// Sampling by time: time of the last sample.
    pub last_ns: u64,
    /// Samples that could neither be walked nor copied.
    pub lost: u64,
}

/// The key of a count: one stack of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct CountKey {
    /// Hash of the stack and of the process lifetime.
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// The samples counted under one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Count {
    /// Number of samples since the one that was sent.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
    /// Time of the last of them.
    pub time_ns: u64,
}

/// Threads that can be off the CPU at one time.
pub const MAX_OFF: u32 = 65536;
/// Index of a counter: times off the CPU too short to be recorded.
pub const OFF_SHORT: u32 = 16;
/// Index of a counter: the sum of [`OFF_SHORT`] times, in nanoseconds.
pub const OFF_SHORT_NS: u32 = 17;
/// Index of a counter: times off the CPU for which there was no space.
pub const OFF_LOST: u32 = 18;
/// Index of a counter: the sum of [`OFF_LOST`] times, in nanoseconds.
pub const OFF_LOST_NS: u32 = 19;
/// Key of a time for which no stack is taken.
pub const OFF_NO_STACK: u64 = 0;
/// Key of a stack that cannot be walked: it is copied instead.
pub const OFF_COPY: u64 = 1;
/// Last bits of the key of a stack taken from outside, as that of a thread that was off the CPU when the recording began. The bits
/// before them are the time.
pub const OFF_SINCE_BEGIN: u64 = 2;
/// The most kernel frames of such a stack.
pub const OFF_KERNEL_FRAMES: u32 = 64;
/// Flag of such a thread: it is runnable and waits for a CPU.
pub const OFF_RUNNABLE: u32 = 1;
/// Flag of such a thread: its user code is 64-bit.
pub const OFF_HAS_USER: u32 = 2;
/// Flag of such a thread: its user code is 32-bit.
pub const OFF_HAS_USER_32: u32 = 4;
/// Binary logarithm of the window, in nanoseconds, in which a limited number of stacks is taken.
pub const PACE_BITS: u32 = 27;
/// The shortest interval between two stacks, in nanoseconds off the CPU.
pub const PACE_FIRST: u64 = 1024;
/// The longest such interval.
pub const PACE_LAST: u64 = 1073741824;

/// A thread that is or was off the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Off {
    /// Begin of the time off, by the monotonic clock; 0: the thread runs again.
    pub out_ns: u64,
    /// Time at which the thread became runnable; 0: it is blocked, or that is not known.
    pub woken_ns: u64,
    /// Total run-queue wait of the thread when it left, by the scheduler's account.
    pub delay_ns: u64,
    /// Total CPU time of the thread when it left; once it runs again, that minus the moment of its return. When the thread leaves again,
    /// its CPU time minus that moment is the same number, plus the CPU time that it was charged for before it was switched to.
    pub charged_ns: u64,
    /// Key of its stack.
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// CPU time in nanoseconds that the thread was charged for before it was switched to.
    pub ahead_ns: u32,
}

/// A thread that was off the CPU when the recording began, with its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct OffThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of the look at the thread, by the monotonic clock.
    pub time_ns: u64,
    /// `OFF_RUNNABLE`, `OFF_HAS_USER` and `OFF_HAS_USER_32` flags.
    pub flags: u32,
    /// Used entries of `kernel`.
    pub kernel_frames: u32,
    /// Number of the system call that the thread is in, or [`NO_CALL`](super::NO_CALL).
    pub call: u32,
    /// Zero.
    pub zero: u32,
    /// Address at which user code continues.
    pub ip: u64,
    /// Address that thread-local storage is relative to.
    pub thread_pointer: u64,
    /// General user registers, by DWARF number: as many as the architecture has.
    pub registers: [u64; USER_REGISTERS as usize],
    /// Kernel frames, innermost first.
    pub kernel: [u64; OFF_KERNEL_FRAMES as usize],
}

/// A return address that a return probe (uretprobe) has replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ReplacedReturn {
    /// Thread.
    pub tid: u32,
    /// Zero.
    pub zero: u32,
    /// Stack address of the return address.
    pub at: u64,
    /// The original return address.
    pub pc: u64,
}

/// Throttle for the stacks taken on a CPU. While few threads leave the CPU, every time off gets a stack; otherwise stacks are spread
/// evenly over the time off the CPU. Times shorter than the interval between stacks are summed, blocked times and run-queue waits
/// separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pace {
    /// Begin of the window in which stacks are counted.
    pub since_ns: u64,
    /// Time of the last stack.
    pub last_ns: u64,
    /// Time at which the CPU was given to the thread that comes back next; 0: not reported.
    pub switched_ns: u64,
    /// The interval in nanoseconds off the CPU; 0: every time off gets a stack.
    pub interval: u64,
    /// Times summed since the last stack: blocked, waited.
    pub sums: [u64; 2],
    /// Sums at which the next stack is due: blocked, waited.
    pub gaps: [u64; 2],
    /// Stacks taken in the window.
    pub stacks: u32,
    /// Zero.
    pub zero: u32,
}
