//! What watches the target beside the samples, as the recorder sees it.
//!
//! Not here: what it sees.

use std::io;
use std::os::fd::BorrowedFd;

/// Something that watches.
pub trait TargetObserver {
    /// Follows everybody.
    fn follow_all(&mut self) -> io::Result<()>;
    /// Keeps to processes that are followed: to none, until one is.
    fn only_followed(&mut self) -> io::Result<()>;
    /// Follows, and keeps to, this process, by its pidfd, with what it forks from now on, and others that are told. `from_exec`:
    /// what it does before its next exec is not the target's.
    fn follow(&mut self, pid: BorrowedFd<'_>, from_exec: bool) -> io::Result<()>;
    /// From now on what is seen counts.
    fn begin(&mut self) -> io::Result<()>;
    /// No longer.
    fn end(&mut self) -> io::Result<()>;
}
