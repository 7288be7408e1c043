//! In-kernel counting of a command's activity, as seen by the code that runs the command.

use std::os::fd::BorrowedFd;

/// Counts the activity of a command in the kernel.
///
/// For each run: [`take`](Self::take), which starts from zero; [`follow`](Self::follow) while the command is held; [`program`](Self::program), which
/// the
/// caller attaches to a clock event; the run; [`runtime_ns`](Self::runtime_ns), polled after its end, as tasks are freed some time later; and `take`
/// for the result. All calls come from one thread and do not wait. Counts without room are reported ([`KernelCounts::untold`]), never
/// dropped silently. A kernel that cannot count calls returns `None` for them.
///
/// Example: `Stat` in `plumb-capture-bpf`.
pub trait StatCounters {
    /// Returns the program to call at a fixed rate.
    fn program(&self) -> BorrowedFd<'_>;
    /// Counts what this process and its future children do from now on.
    fn follow(&mut self, pid: BorrowedFd<'_>) -> std::io::Result<()>;
    /// Returns the CPU time of threads freed since the last [`StatCounters::take`], in nanoseconds.
    fn runtime_ns(&self) -> u64;
    /// Returns what was counted since the last call.
    fn take(&mut self) -> KernelCounts;
}

/// The results of a [`StatCounters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Number of system calls that returned; `None`: they were not counted.
    pub calls: Option<u64>,
    /// Ticks in user code.
    pub user: u64,
    /// Ticks in the kernel.
    pub kernel: u64,
    /// Threads that have exited.
    pub threads: Vec<ThreadTime>,
    /// Number of threads dropped for lack of room, and their CPU time in nanoseconds.
    pub untold: (u64, u64),
}

/// The CPU time of a thread that has exited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Thread name at its exit.
    pub comm: String,
    /// Thread id.
    pub tid: u32,
    /// Number of threads with this id and name.
    pub threads: u64,
    /// Total CPU time of these threads in nanoseconds, as accounted by the scheduler.
    pub runtime_ns: u64,
}
