//! Why something could not be done.

use std::fmt;
use std::io;

/// Why something could not be done.
#[derive(Debug)]
pub enum Error {
    /// Sampling was not started, or was stopped, or this is a forked child, in which nothing is sampled.
    NotStarted,
    /// Sampling was started already.
    AlreadyStarted,
    /// The calling thread is registered already.
    AlreadyRegistered,
    /// All real-time signals have handlers. Choose one in [`Options::signal`](crate::Options::signal).
    NoSignal,
    /// The system refused something.
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn last(what: &'static str) -> Error {
        Error::System { what, error: io::Error::last_os_error() }
    }

    /// As C has it: a negative `errno`.
    pub(crate) fn code(&self) -> i32 {
        -match self {
            Error::NotStarted => libc::ESRCH,
            Error::AlreadyStarted | Error::AlreadyRegistered => libc::EALREADY,
            Error::NoSignal => libc::EBUSY,
            Error::System { error, .. } => error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotStarted => f.write_str("sampling is not started"),
            Error::AlreadyStarted => f.write_str("sampling is started already"),
            Error::AlreadyRegistered => f.write_str("this thread is registered already"),
            Error::NoSignal => f.write_str("every real-time signal has a handler: choose the signal to use"),
            Error::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
