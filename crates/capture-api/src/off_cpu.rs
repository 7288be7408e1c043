//! Time that threads are off the processor, as the recorder is told of it by what walks stacks in the kernel.
//!
//! Where a stack could be walked, times come counted by its key, or one by one with it; where it could not, the time comes without,
//! and after it a record with a copy of the stack. Not here: how it is measured, and how times meet such records
//! (`ingest/off_cpu.rs`).

use std::io;

use plumb_unwind::Registers;

use crate::FallbackEvents;

/// What an [`KernelUnwinder`](crate::KernelUnwinder) that measures is asked beyond its samples.
pub trait OffCpu {
    /// What it has stacks copied through that it can't walk. From now on it looks at who is off the processor.
    fn copiers(&mut self) -> io::Result<FallbackEvents>;
    /// Measures no more: who is off stays so, as far as it is concerned.
    fn stop(&mut self) -> io::Result<()>;
    /// The threads that are off the processor and whose stacks were not told of, with these: at the first call, right after
    /// [`KernelUnwinder::begin`](crate::KernelUnwinder::begin), those that have been since before; at others those that went without. Their times are
    /// told by [`OffThread::key`]. Times of threads that were told of are counted up to now, and begin anew. An error: this kernel can't say, and
    /// times are told as they end. `ends`: nothing is going to be told later, so that what has just begun is told of too.
    fn off_now(&mut self, ends: bool) -> io::Result<Vec<OffThread>>;
    /// The times of threads that are off now, up to this moment by the monotonic clock.
    fn pending(&self, now_ns: u64) -> Vec<TimeOff>;
    /// What is in none of these times and counts.
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
    /// Under which its stack was sent; 0: it was not.
    pub key: u64,
}

/// A thread that is off the processor, and where it left it.
#[derive(Clone, Debug)]
pub struct OffThread {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// When it was looked at, by the monotonic clock.
    pub time_ns: u64,
    /// Under which its time is told, if blocked; the next key is for time waited.
    pub key: u64,
    /// Kernel frames, innermost first.
    pub kernel: Vec<u64>,
    /// Its user part.
    pub user: OffUser,
    /// Where its control block is, by which interpreters know it.
    pub thread_pointer: u64,
    /// Number of the system call that it is in, if it is in one.
    pub syscall: Option<u32>,
}

/// Where a thread that is off the processor left user code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffUser {
    /// It has none: a kernel thread.
    Absent,
    /// It is 32-bit code, whose stacks are not walked.
    Compat,
    /// The registers at that place.
    At(Registers),
}

/// Times that are told by their sums.
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
    /// The sum of those that came after the last stack of their processor, when not each time got one.
    pub rest_ns: u64,
}
