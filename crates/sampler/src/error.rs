//! Errors of the sampler.

use std::fmt;
use std::io;

/// The reason why a function failed.
#[derive(Debug)]
pub enum Error {
    /// Sampling was not started, or was stopped, or this is a forked child process, in which sampling is off.
    NotStarted,
    /// Sampling has already been started.
    AlreadyStarted,
    /// The calling thread is already registered.
    AlreadyRegistered,
    /// All real-time signals have handlers. Choose one in [`Options::signal`](crate::Options::signal).
    NoSignal,
    /// A system call failed.
    System {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn last(what: &'static str) -> Error {
        Error::System { what, error: io::Error::last_os_error() }
    }

    /// The error for C: a negative `errno`.
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
