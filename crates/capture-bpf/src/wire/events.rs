//! What is sampled, and what is counted in the kernel: the recorder's orders, places, stacks, times off the processor.

/// Distinct stacks that are counted at one time.
pub const MAX_COUNTS: u32 = 16384;
/// Samples that a processor can be making at one time, as one interrupts another.
pub const DRAFTS: u32 = 2;
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

/// What the recorder tells the programs while they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// What began before was begun in an earlier turn, whose end nobody saw.
    pub since_ns: u64,
    /// Whether only followed processes are sampled.
    pub follows_some: u32,
    /// Whether samples count. Before, stacks are walked only to learn which tables are wanted.
    pub began: u32,
    /// Whether it is looked at who is off the processor.
    pub off_cpu: u32,
    /// The recording ends: the stack of whoever is off without one is looked at, however short a time that has been.
    pub ends: u32,
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
    /// Number of the system call that alone counts, or [`NO_CALL`](super::NO_CALL).
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
/// Last bits of the key of a stack that was looked at, as of a thread that was off the processor when the recording began; before them is the time.
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
    /// Processor time that it had been charged ever, less the moment when it came back if it has: as it goes again, its processor time
    /// less the moment is as much, but for what it was charged of the time in which it was not switched to.
    pub charged_ns: u64,
    /// Its stack's key.
    pub key: u64,
    /// Process.
    pub pid: u32,
    /// What it was charged of the time before that in which it was not switched to, nanoseconds.
    pub ahead_ns: u32,
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
    /// Number of the system call that it is in, or [`NO_CALL`](super::NO_CALL).
    pub call: u32,
    /// Zero.
    pub zero: u32,
    /// Where user code goes on.
    pub ip: u64,
    /// Where the thread's control block is: the base of the FS segment.
    pub thread_pointer: u64,
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
