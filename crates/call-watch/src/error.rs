//! Reasons why calls can't be traced, with advice in their messages.

use std::fmt;
use std::io;

use plumb_capture_bpf::LoadError;
use plumb_target::TargetError;

/// The reason why calls can't be traced.
#[derive(Debug)]
pub enum CallWatchError {
    /// The kernel refuses the programs.
    Load(LoadError),
    /// A system call failed.
    System(io::Error),
    /// The target does not exist, or can't be followed.
    Target(TargetError),
    /// The thread that traced has failed.
    Failed,
}

impl fmt::Display for CallWatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallWatchError::Load(error) => write!(
                f,
                "cannot observe system calls for --advice: {error}{}\n  without:  plumb kernel, without --advice",
                error.remedy()
            ),
            CallWatchError::System(error) => write!(f, "observing system calls: {error}"),
            CallWatchError::Target(error) => error.fmt(f),
            CallWatchError::Failed => write!(f, "the thread that watched calls has failed"),
        }
    }
}

impl std::error::Error for CallWatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallWatchError::Target(error) => Some(error),
            // The message has all of it.
            CallWatchError::Load(_) | CallWatchError::System(_) | CallWatchError::Failed => None,
        }
    }
}

impl From<io::Error> for CallWatchError {
    fn from(error: io::Error) -> Self {
        CallWatchError::System(error)
    }
}

impl From<TargetError> for CallWatchError {
    fn from(error: TargetError) -> Self {
        CallWatchError::Target(error)
    }
}
