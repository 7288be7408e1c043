//! The target of a recording, and the reason for a recording's end.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::{Launch, Program};

/// The target of a recording.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that the recorder starts.
    Command(Launch),
    /// Running processes, with processes that they start, until these processes end.
    Processes(Vec<u32>),
    /// A running process with all its present and future descendants, until the last of them ends.
    Tree(u32),
    /// Processes in a cgroup or below it, given by the path of its directory or its name in the hierarchy, until it is removed.
    Cgroup(PathBuf),
    /// Processes that begin to run this program from now on, with processes that they start, until these processes end.
    Awaited(Program),
    /// The whole machine.
    Machine,
}

impl Target {
    /// The command's name; `None`: the target is not a command.
    pub fn command_name(&self) -> Option<String> {
        match self {
            Target::Command(launch) => Some(launch.name()),
            _ => None,
        }
    }
}

/// The exit status of a finished command as a shell reports it: its own, or 128 plus the number of the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The reason for a recording's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended.
    Exited(ExitStatus),
    /// All processes to be recorded ended.
    Gone,
    /// The recorder received this signal.
    Signal(i32),
}
