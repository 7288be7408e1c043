//! What measures how long threads are off the processor, as the recorder sees it.
//!
//! Not here: how it measures, and how its times meet their stacks (`ingest/off_cpu.rs`).

use std::io;
use std::os::fd::BorrowedFd;

/// Something that measures. Nobody is followed at first.
pub trait OffCpu {
    /// Becomes readable when there is much to be taken.
    fn wakes(&self) -> BorrowedFd<'_>;
    /// Measures everybody from now on.
    fn follow_all(&mut self) -> io::Result<()>;
    /// Measures, and keeps to, this process, by its pidfd, with what it forks from now on, and to others that are told.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> io::Result<()>;
    /// Takes the times that are there, in about the order of their ends.
    fn take(&mut self, into: &mut Vec<TimeOff>);
    /// The times of threads that are off now, up to this moment by the monotonic clock.
    fn pending(&self, now_ns: u64) -> Vec<TimeOff>;
    /// What is in none of these times.
    fn unmeasured(&self) -> Unmeasured;
}

/// A time that a thread was off the processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeOff {
    /// Since when, by the monotonic clock.
    pub out_ns: u64,
    /// How long it could not run: it slept, or waited for something.
    pub blocked_ns: u64,
    /// How long it then could run, and had no processor. All of it, of a thread that was preempted.
    pub waited_ns: u64,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
}

/// Times that are not told one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmeasured {
    /// So many were shorter than was asked for.
    pub short: u64,
    /// Their sum.
    pub short_ns: u64,
    /// So many found no room.
    pub lost: u64,
    /// Their sum.
    pub lost_ns: u64,
}
