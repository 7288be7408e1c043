//! Observation of the target besides samples, as the recorder sees it.
//!
//! Elsewhere: the observations themselves.

use std::io;
use std::os::fd::BorrowedFd;

/// Observes the target beside a recorder: counts or traces system calls, or records something else.
///
/// # Order of calls
/// 1. [`follow_all`](Self::follow_all) for a whole machine. Otherwise [`only_followed`](Self::only_followed), then
///    [`follow`](Self::follow) for each process that is there. Sampling events are opened after that.
/// 2. [`begin`](Self::begin), when the recorder is ready. A command is held until then, so nothing of it is missed.
/// 3. [`end`](Self::end), by whoever started the recorder: at the end of sampling, and before the recorder stops.
///
/// If the recorder fails to start, `end` is not called: release what was taken when dropped.
///
/// # Threads
/// All calls come from the recorder's thread and hold up the recording: none may wait for the target. Long work belongs to a thread
/// that `begin` starts.
///
/// # Errors
/// An error of any method ends the recording with its reason. An observer that is not essential returns `Ok` and reports its failure
/// elsewhere.
///
/// Children of followed processes are followed by the implementor itself; the recorder reports none of them.
///
/// Examples: `CallSums` and `Calls` in `plumb-capture-bpf`, which keep sums in the kernel or send single calls; `SecondLook` in
/// `plumb-record`, which starts a recording of its own.
pub trait TargetObserver {
    /// Follows all processes.
    fn follow_all(&mut self) -> io::Result<()>;
    /// Restricts observation to followed processes (initially none).
    fn only_followed(&mut self) -> io::Result<()>;
    /// Follows this process, given by its pidfd, and its future children, and restricts observation to followed processes. `from_exec`:
    /// what it does before its next exec is not attributed to the target.
    fn follow(&mut self, pid: BorrowedFd<'_>, from_exec: bool) -> io::Result<()>;
    /// Starts observation.
    fn begin(&mut self) -> io::Result<()>;
    /// Stops observation.
    fn end(&mut self) -> io::Result<()>;
}
