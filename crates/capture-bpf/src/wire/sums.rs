//! Counts without stacks: CPU times of threads that ended, and page faults.

/// Bytes of a task's name, with the terminating zero.
pub const COMM_BYTES: u32 = 16;
/// The most threads whose times are kept separately.
pub const MAX_THREADS: u32 = 16384;
/// Index of a counter: system calls that have returned.
pub const STAT_CALLS: u32 = 0;
/// Index of a counter: samples that interrupted user code.
pub const STAT_USER: u32 = 1;
/// Index of a counter: samples that interrupted the kernel.
pub const STAT_KERNEL: u32 = 2;
/// Index of a counter: threads for whose times there was no space.
pub const STAT_LOST: u32 = 3;
/// Index of a counter: the sum of these times, in nanoseconds.
pub const STAT_LOST_NS: u32 = 4;

/// A thread that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct ThreadKey {
    /// Thread number.
    pub tid: u32,
    /// Thread name at its end, padded with zeros.
    pub comm: [u8; COMM_BYTES as usize],
}

/// CPU time of the threads with one number and name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ThreadTime {
    /// CPU time in nanoseconds, as the scheduler accounts it.
    pub runtime_ns: u64,
    /// Number of these threads.
    pub threads: u64,
}

/// Index of a counter: page faults that did not fit into the ring.
pub const FAULTS_DROPPED: u32 = 0;

/// A page fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Fault {
    /// Time, by the monotonic clock.
    pub time_ns: u64,
    /// Faulting address.
    pub address: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}
