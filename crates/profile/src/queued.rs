//! Run-queue wait of threads, as accounted by the kernel.
//!
//! A thread that has exited cannot be read any more, so the end of its life may be missing: its duration is recorded here, which
//! bounds the wait from above. Elsewhere: on which CPU threads waited, and who had it.

/// Totals of the target's threads during the recording, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// CPU time.
    pub ran_ns: u64,
    /// Run-queue wait.
    pub waited_ns: u64,
    /// Unobserved time: from the last reading of each thread to its exit.
    pub unseen_ns: u64,
    /// Time that the hypervisor stole from all CPUs of the machine: included in neither.
    pub stolen_ns: u64,
    /// Time for which limits of the target's control groups throttled it, over all CPUs. `None`: not recorded, or not known.
    pub throttled_ns: Option<u64>,
    /// The thread with the longest CPU time and run-queue wait.
    pub busiest: Option<QueuedThread>,
}

/// The times of one thread, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedThread {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Thread name.
    pub comm: String,
    /// Lifetime during the recording.
    pub lived_ns: u64,
    /// CPU time.
    pub ran_ns: u64,
    /// Run-queue wait.
    pub waited_ns: u64,
    /// Unobserved time.
    pub unseen_ns: u64,
}
