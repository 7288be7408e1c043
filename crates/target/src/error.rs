//! Errors of finding, starting and waiting for a target.

use std::fmt;
use std::io;

use plumb_process::FOREIGN_PROC;

use crate::cgroup::NoCgroup;

/// The reason why a target can't be started, found or waited for.
#[derive(Debug)]
pub enum TargetError {
    /// No process has this ID.
    NoSuchProcess(u32),
    /// Process IDs mean other processes in `/proc` than here.
    ForeignProc,
    /// The cgroup does not exist, or can't be recorded.
    Cgroup(NoCgroup),
    /// The command could not be started.
    Command {
        /// The command's name as given.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// Another operation failed.
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl TargetError {
    /// Wraps an error with the attempted operation.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> TargetError {
        move |error| TargetError::System { what, error }
    }

    /// The exit status that a shell would return: 127 for a command that does not exist, 126 for one that can't be
    /// executed, otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            TargetError::Command { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            TargetError::Command { .. } => 126,
            _ => 1,
        }
    }
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::Cgroup(why) => why.fmt(f),
            TargetError::ForeignProc => write!(f, "process numbers are ambiguous: {FOREIGN_PROC}"),
            TargetError::NoSuchProcess(pid) => write!(f, "there is no process {pid}"),
            TargetError::Command { name, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{name}: command not found")
            }
            TargetError::Command { name, error } => write!(f, "{name}: cannot be run: {error}"),
            TargetError::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for TargetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TargetError::Command { error, .. } | TargetError::System { error, .. } => Some(error),
            TargetError::ForeignProc | TargetError::NoSuchProcess(_) | TargetError::Cgroup(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_cannot_start_exits_as_in_a_shell() {
        let command = |kind: io::ErrorKind| TargetError::Command { name: "x".into(), error: kind.into() };
        assert_eq!(command(io::ErrorKind::NotFound).exit_code(), 127);
        assert_eq!(command(io::ErrorKind::PermissionDenied).exit_code(), 126);
        assert_eq!(TargetError::NoSuchProcess(1).exit_code(), 1);
    }
}
