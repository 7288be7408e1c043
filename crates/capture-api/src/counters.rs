//! What counts in the kernel what a command does, as who runs the command sees it.

use std::os::fd::BorrowedFd;

/// Something in the kernel that counts what a command does.
pub trait StatCounters {
    /// The program that is to be called at a steady pace.
    fn program(&self) -> BorrowedFd<'_>;
    /// Counts what this process does from now on, with what it forks.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> std::io::Result<()>;
    /// The processor time of threads that have been freed since the last [`StatCounters::take`], in nanoseconds.
    fn runtime_ns(&self) -> u64;
    /// What was counted since the last time.
    fn take(&mut self) -> KernelCounts;
}

/// What a [`StatCounters`] counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// System calls that returned; `None`: they weren't counted.
    pub calls: Option<u64>,
    /// Ticks in user code.
    pub user: u64,
    /// Ticks in the kernel.
    pub kernel: u64,
    /// Threads that have ended.
    pub threads: Vec<ThreadTime>,
    /// Threads that there was no room for, and their time in nanoseconds.
    pub untold: (u64, u64),
}

/// The processor time of a thread that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// What it was called at its end.
    pub comm: String,
    /// Its number.
    pub tid: u32,
    /// How many threads of this number and name there were.
    pub threads: u64,
    /// Their processor time in nanoseconds, as the scheduler accounts it.
    pub runtime_ns: u64,
}
