//! What is summed up without stacks: times of threads that ended, page faults.

/// Bytes of a task's name, with a zero at its end.
pub const COMM_BYTES: u32 = 16;
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
