//! Observation of the target besides samples, as the recorder sees it.
//!
//! Elsewhere: the observations themselves.

use std::io;
use std::os::fd::BorrowedFd;

/// Observes the target.
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
