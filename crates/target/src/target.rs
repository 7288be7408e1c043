//! Who is to be recorded, and why a recording ended.

use std::path::PathBuf;

use crate::{Launch, Program};

/// Who is to be recorded.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command that the recorder starts.
    Command(Launch),
    /// Processes that run already, with what they start, until these processes end.
    Processes(Vec<u32>),
    /// A process that runs already and all its descendants, living and to be born, until the last of them ends.
    Tree(u32),
    /// What runs in a cgroup or below it, by the path of its directory or its name in the hierarchy, until it is removed.
    Cgroup(PathBuf),
    /// Processes that begin to run this program from now on, with what they start, until these processes end.
    Awaited(Program),
    /// Everything.
    Machine,
}

impl Target {
    /// What a command is called; `None`: it is no command.
    pub fn command_name(&self) -> Option<String> {
        match self {
            Target::Command(launch) => Some(launch.name()),
            _ => None,
        }
    }
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended.
    Exited(std::process::ExitStatus),
    /// All processes to be recorded ended.
    Gone,
    /// A signal of this number told the recorder to end.
    Signal(i32),
}
