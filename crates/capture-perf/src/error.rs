//! Why a recording could not begin, in words that say what to do.

use std::fmt;
use std::io;

/// Why a recording could not begin or go on.
#[derive(Debug)]
pub enum Error {
    /// The kernel doesn't let this user sample what was asked for.
    NotPermitted {
        /// What was asked for, such as `the whole machine`.
        what: String,
        /// `/proc/sys/kernel/perf_event_paranoid`, if it could be read.
        paranoid: Option<i32>,
    },
    /// There is no such process.
    NoSuchProcess(u32),
    /// The command could not be started.
    Command {
        /// Its name as given.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// This kernel has no `perf_event_open`, or a sandbox forbids it.
    Unsupported(io::Error),
    /// No memory for the rings that records are written to.
    NoRing(io::Error),
    /// Something else that the system refused.
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::System { what, error }
    }

    /// The exit status that a shell would give for it: 127 for a command that isn't there, 126 for one that can't be
    /// run, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Command { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Error::Command { .. } => 126,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotPermitted { what, paranoid } => not_permitted(f, what, *paranoid),
            Error::NoSuchProcess(pid) => write!(f, "there is no process {pid}"),
            Error::Command { name, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{name}: command not found")
            }
            Error::Command { name, error } => write!(f, "{name}: cannot be run: {error}"),
            Error::Unsupported(error) => write!(
                f,
                "perf_event_open is not to be had here: {error}. In a container it takes a seccomp profile that \
                 allows it, or the capability CAP_PERFMON (docker run --cap-add PERFMON)"
            ),
            Error::NoRing(error) => write!(
                f,
                "no memory for the kernel's records: {error}. More is allowed by: \
                 sudo sysctl kernel.perf_event_mlock_kb=2048"
            ),
            Error::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

fn not_permitted(f: &mut fmt::Formatter<'_>, what: &str, paranoid: Option<i32>) -> fmt::Result {
    write!(f, "not allowed to sample {what}: ")?;
    match paranoid {
        Some(level) => write!(f, "kernel.perf_event_paranoid is {level}, and this user lacks CAP_PERFMON.")?,
        None => write!(f, "this user lacks CAP_PERFMON.")?,
    }
    let needed = if what == MACHINE { 0 } else { 2 };
    write!(
        f,
        "\n  allow it:  run as root, or: sudo sysctl kernel.perf_event_paranoid={needed}\
         \n  or:        sudo setcap cap_perfmon,cap_sys_ptrace=ep $(command -v plumb)"
    )?;
    if what == MACHINE {
        write!(f, "\n  without:   plumb record -- CMD, and plumb record -p PID for your own processes")?;
    }
    Ok(())
}

/// What [`Error::NotPermitted`] calls the whole machine.
pub(crate) const MACHINE: &str = "the whole machine";

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Command { error, .. }
            | Error::Unsupported(error)
            | Error::NoRing(error)
            | Error::System { error, .. } => Some(error),
            Error::NotPermitted { .. } | Error::NoSuchProcess(_) => None,
        }
    }
}
