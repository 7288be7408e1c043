//! Lives of processes: when each began, how, from whom, and when and how it ended, whether or not it was ever sampled.
//!
//! A *life* is a process from its fork or exec to its next exec or its exit: one program in one process. A process
//! that execs has several lives, one after the other, with the same pid; the short one between the fork and the first
//! exec still runs the parent's program. Rows are in the order in which the lives were learnt of, which is that of
//! their beginnings but for processes that ran already: a life's parent always comes before it.

use crate::process::ProcessId;
use crate::strings::StringId;
use crate::table::id;

id!(
    /// A life of a process.
    LifeId
);

/// A process from its fork or exec to its next exec or its exit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// Process id (the kernel's tgid).
    pub pid: u32,
    /// The life that forked this process, the same for all lives of a process. `None` if not known.
    pub parent: Option<LifeId>,
    /// Path of the executable, empty if not known. After a fork that of the parent.
    pub exe: StringId,
    /// The kernel's name of the process (`comm`) when the life began: of a script the script's.
    pub comm: StringId,
    /// How it began.
    pub begin: Begin,
    /// How it ended.
    pub end: End,
    /// When it began, in nanoseconds on the clock of the samples. `None`: before the recording.
    pub start_ns: Option<u64>,
    /// When it ended. `None`: not while it was recorded. Since Linux 6.16 the kernel tells of an exit before it frees
    /// the memory, before that it told afterwards.
    pub end_ns: Option<u64>,
    /// Processor time that the kernel accounted for all threads of this life, in nanoseconds, where that is known.
    pub cpu_ns: Option<u64>,
    /// The most memory that was resident, in bytes, as last read while it ran. Only read of processes that fork.
    pub peak_rss_bytes: Option<u64>,
    /// What its samples point at. `None`: it was never sampled.
    pub process: Option<ProcessId>,
}

/// How a life began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// It ran before the recording.
    Running,
    /// By a fork, and it runs its parent's program.
    Fork,
    /// By an exec.
    Exec,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It did not, as far as was recorded.
    Running,
    /// By an exec: the next life with the same pid follows.
    Exec,
    /// By the exit of its last thread.
    Exit,
}

impl Begin {
    /// All ways.
    pub const ALL: [Begin; 3] = [Begin::Running, Begin::Fork, Begin::Exec];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Begin::Running => "running",
            Begin::Fork => "fork",
            Begin::Exec => "exec",
        }
    }

    /// The way called `name`.
    pub fn from_name(name: &str) -> Option<Begin> {
        Begin::ALL.into_iter().find(|begin| begin.name() == name)
    }
}

impl End {
    /// All ways.
    pub const ALL: [End; 3] = [End::Running, End::Exec, End::Exit];

    /// Stable name, for files and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            End::Running => "running",
            End::Exec => "exec",
            End::Exit => "exit",
        }
    }

    /// The way called `name`.
    pub fn from_name(name: &str) -> Option<End> {
        End::ALL.into_iter().find(|end| end.name() == name)
    }
}
