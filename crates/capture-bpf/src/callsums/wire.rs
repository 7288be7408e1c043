//! What the programs that sum up system calls and their loader share.
//!
//! `cargo run -p xtask -- codegen` turns this file into `bpf/callsums.h`, as it does `src/wire/`; the same rules hold.

/// Numbers of system calls that are told apart.
pub const SUM_NUMBERS: u32 = 512;
/// What all others count as, and the calls of 32-bit programs.
pub const SUM_OTHERS: u32 = 511;
/// Buckets of a histogram: one for each power of two, in nanoseconds.
pub const BUCKETS: u32 = 40;
/// Bytes of a text that an argument points at.
pub const TEXT_BYTES: u32 = 64;
/// The most sums that are kept apart from those of each call.
pub const MAX_SUMS: u32 = 16384;
/// The most errors of calls that are kept apart.
pub const MAX_ERRORS: u32 = 16384;

/// Calls are summed up by their number alone.
pub const PER_CALL: u32 = 0;
/// And by thread.
pub const PER_THREAD: u32 = 1;
/// And by process.
pub const PER_PROCESS: u32 = 2;

/// And by the file that the first argument is a descriptor of; calls without one are in no sum.
pub const PER_FILE: u32 = 3;

/// By process, and only how many there were and their time on the processor: [`ProcessSum`].
pub const PER_PROCESS_ALONE: u32 = 4;
/// The most such sums, unless the loader says otherwise: of a thousand processes that begin each second, what they leave in two seconds.
pub const MAX_PROCESS_SUMS: u32 = 65536;

/// Parts of a path that are kept, from its end.
pub const PARTS: u32 = 8;
/// Bytes of one of them, and of the name of a kind of file system.
pub const PART_BYTES: u32 = 32;
/// The most files whose names are kept.
pub const MAX_NAMES: u32 = 16384;

/// A process counts from now on.
pub const COUNT_NOW: u32 = 1;
/// From its next exec on.
pub const COUNT_FROM_EXEC: u32 = 2;

/// Bit of what is known of a number: a call that returns in the child too, with 0.
pub const CALL_FORKS: u32 = 1;
/// Bit of what is known of a number: its first argument is a descriptor.
pub const CALL_TAKES_FILE: u32 = 2;
/// Bits above which it says which argument is a text, counted from 1; 0: none.
pub const CALL_TEXT_SHIFT: u32 = 8;

/// Index of a counter: minor page faults.
pub const SUM_MINOR: u32 = 0;
/// Major page faults.
pub const SUM_MAJOR: u32 = 1;
/// Context switches that threads made themselves, as they had to wait.
pub const SUM_VOLUNTARY: u32 = 2;
/// Context switches that were made for the sake of others.
pub const SUM_INVOLUNTARY: u32 = 3;
/// Threads that have ended.
pub const SUM_ENDED: u32 = 4;
/// Calls that found no room.
pub const SUM_LOST: u32 = 5;

/// What a sum is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct SumKey {
    /// Number of the call.
    pub number: u32,
    /// Thread or process, or the file's device; 0: all.
    pub who: u32,
    /// The file's inode; 0: all.
    pub file: u64,
}

/// What a process called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ProcessCall {
    /// Number of the call.
    pub number: u32,
    /// The process.
    pub pid: u32,
    /// When it began, in nanoseconds since the machine's start.
    pub start_ns: u64,
}

/// Calls of a process, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ProcessSum {
    /// How many ended.
    pub calls: u64,
    /// From beginning to end, without what the thread was off the processor, in nanoseconds. A call whose beginning was not seen adds nothing.
    pub cpu_ns: u64,
}

/// Which file a name is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NameKey {
    /// Its inode.
    pub file: u64,
    /// Its device.
    pub device: u32,
    /// Zero.
    pub zero: u32,
}

/// Part of a path, up to a zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Part {
    /// The text.
    pub text: [u8; PART_BYTES as usize],
}

/// The name of a file: from its end, in the file system that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Name {
    /// The kind of the file system.
    pub system: Part,
    /// Parts of the path, the last first. A part that is empty, or `/`, ends it.
    pub parts: [Part; PARTS as usize],
}

/// An error of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ErrorKey {
    /// The call.
    pub sum: SumKey,
    /// Number of the error.
    pub error: u32,
    /// Zero.
    pub zero: u32,
}

/// Calls, summed up.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sum {
    /// How many there were.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Sum of what those gave back that gave back a positive number.
    pub given: u64,
    /// Those whose beginning was seen too. What follows is of them.
    pub timed: u64,
    /// From beginning to end, in nanoseconds.
    pub wall_ns: u64,
    /// What of it the thread waited for something.
    pub blocked_ns: u64,
    /// What of it another thread had the processor, though this one could have gone on.
    pub preempted_ns: u64,
    /// What of it the thread waited for a processor after what it had waited for had come.
    pub queued_ns: u64,
    /// The longest call.
    pub longest_ns: u64,
    /// When it ended, by the monotonic clock.
    pub longest_end_ns: u64,
    /// What it gave back.
    pub longest_result: i64,
    /// Its arguments.
    pub longest_args: [u64; 6],
    /// Its process.
    pub longest_pid: u32,
    /// Its thread.
    pub longest_tid: u32,
    /// The text that one of its arguments points at, up to a zero.
    pub longest_text: [u8; TEXT_BYTES as usize],
    /// How many took from 2ⁿ nanoseconds up to twice that.
    pub buckets: [u64; BUCKETS as usize],
}

/// A thread in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct InCall {
    /// Since when; 0: it is in none.
    pub begin_ns: u64,
    /// Since when it is off the processor; 0: it is not.
    pub out_ns: u64,
    /// Since when it could go on; 0: it can't.
    pub woken_ns: u64,
    /// What it waited in this call so far.
    pub blocked_ns: u64,
    /// How long it was preempted in it.
    pub preempted_ns: u64,
    /// How long it waited for a processor in it.
    pub queued_ns: u64,
    /// It was switched out though it could have gone on.
    pub was_preempted: u64,
}

/// What the kernel had counted of a thread when it began to count here.
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
