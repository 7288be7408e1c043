//! Processes and threads, as they were at the time of their samples.
//!
//! A thread row is one *life under one name*: when a process execs or a thread renames itself, later samples refer
//! to a new row with the same tid. Similarly, a process row is for one executable: exec begins a new row with the
//! same pid.

use crate::strings::StringId;
use crate::table::id;

id!(
    /// A process between two execs.
    ProcessId
);
id!(
    /// A thread between two names.
    ThreadId
);

/// A process from its fork or exec to its next exec or its exit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// Process id (the kernel's tgid). 0 is the idle task.
    pub pid: u32,
    /// Process id of the parent, 0 if not known.
    pub ppid: u32,
    /// Path of the executable, empty if not known.
    pub exe: StringId,
}

impl Process {
    /// The id of a row that replaces all ended processes of a program after folding a long recording: no process has
    /// such an id.
    pub const ENDED: u32 = u32::MAX;

    /// The id of processes and threads whose ids an imported profile lacks: no process has such an id.
    pub const UNKNOWN: u32 = u32::MAX - 1;
}

/// A thread under one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The process.
    pub process: ProcessId,
    /// Thread id.
    pub tid: u32,
    /// The kernel's name of the thread (`comm`, at most 15 bytes).
    pub comm: StringId,
}
