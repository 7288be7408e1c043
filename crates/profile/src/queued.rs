//! How long threads could run but had no processor, as the kernel accounts it for each of them.
//!
//! A thread that has ended can't be asked any more, so that the end of its life may be missing: how long that was is here too, and so
//! what was waited is known to be between two bounds. Not here: on which processor, and who had it meanwhile.

/// The target's threads while they were recorded, all together. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queued {
    /// Time on processors.
    pub ran_ns: u64,
    /// Time in which they could run and had no processor.
    pub waited_ns: u64,
    /// Time of their lives of which nobody saw what it was: each from the last look to its end.
    pub unseen_ns: u64,
    /// What the hypervisor took from all of the machine's processors meanwhile: it counts as neither.
    pub stolen_ns: u64,
    /// How long limits of the target's control groups stopped it, all processors together. `None`: nobody looked, or it is not known.
    pub throttled_ns: Option<u64>,
    /// The thread that ran and waited longest.
    pub busiest: Option<QueuedThread>,
}

/// One thread, likewise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedThread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// How long it was there.
    pub lived_ns: u64,
    /// Time on a processor.
    pub ran_ns: u64,
    /// Time in which it could run and had no processor.
    pub waited_ns: u64,
    /// Time of its life of which nobody saw what it was.
    pub unseen_ns: u64,
}
