//! Errors that prevent a recording, with advice in their messages.

use std::fmt;
use std::io;

use plumb_process::{UnsupportedMachine, setcap_perf};
use plumb_target as target;

/// The reason why a recording could not start or continue.
#[derive(Debug)]
pub enum Error {
    /// Stacks of this architecture's programs can't be recorded yet.
    Machine(UnsupportedMachine),
    /// The kernel doesn't allow this user to sample the requested target or code.
    NotPermitted {
        /// The refused permission.
        what: Asked,
        /// `/proc/sys/kernel/perf_event_paranoid`, if it could be read.
        paranoid: Option<i32>,
    },
    /// The target doesn't exist, its command could not be started, or a system call failed.
    Target(target::TargetError),
    /// This kernel has no `perf_event_open`, or a sandbox forbids it.
    Unsupported(io::Error),
    /// The CPU has no hardware counters, or not this one.
    NoCounter(String),
    /// An event that requires permission to observe the whole machine.
    Privileged(String),
    /// The kernel rejects this event.
    NoEvent {
        /// Name of the event.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// This event happens only in the kernel, and only user code was requested.
    OnlyInKernel(String),
    /// No memory for the ring buffers.
    NoRing(io::Error),
}

impl Error {
    /// Makes an error from the name of a failed action.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Target(target::TargetError::System { what, error })
    }

    /// The exit status with which a shell reports it ([`target::TargetError::exit_code`]).
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Target(error) => error.exit_code(),
            _ => 1,
        }
    }
}

impl From<target::TargetError> for Error {
    fn from(error: target::TargetError) -> Self {
        Error::Target(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine(error) => error.fmt(f),
            Error::NotPermitted { what, paranoid } => not_permitted(f, *what, *paranoid),
            Error::Target(error) => error.fmt(f),
            Error::Unsupported(error) => {
                write!(f, "perf_event_open is not available: {error}. In a container: {CONTAINER_REMEDY}")
            }
            Error::NoCounter(name) => write!(
                f,
                "{name}: this machine has no performance counter for this event (a virtual machine has counters only with a \
                 virtual PMU, in QEMU/KVM: -cpu host,pmu=on)\
                 \n  without:  plumb record -- CMD samples CPU time; -e page-faults and tracepoints need no counter either"
            ),
            // perf_uprobe_event_init in kernel/events/core.c requires more than tracepoints do.
            Error::Privileged(name) if name.starts_with("uprobe:") => write!(
                f,
                "not allowed to sample {name}: the kernel gives uprobes to users with CAP_SYS_ADMIN only.\
                 \n  do:       run as root"
            ),
            Error::Privileged(name) => write!(
                f,
                "not allowed to sample {name}: tracepoints see all processes, and this user lacks CAP_PERFMON.\
                 \n  do:       run as root\
                 \n  or:       {}",
                setcap_perf()
            ),
            Error::NoEvent { name, error } => {
                write!(f, "{name}: the kernel cannot sample this event: {error}")
            }
            Error::OnlyInKernel(name) => write!(
                f,
                "{name}: happens in the kernel only, and only user code is sampled: leave out --user-only, or allow kernel samples:\
                 \n  do:       sudo sysctl kernel.perf_event_paranoid=1, or run as root"
            ),
            Error::NoRing(error) => write!(
                f,
                "cannot allocate the ring buffers of events: {error}; to raise the limit: \
                 sudo sysctl kernel.perf_event_mlock_kb=2048"
            ),
        }
    }
}

/// Kinds of sampling that the kernel may refuse, each by a separate rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// User code of this user's processes.
    Own,
    /// The kernel, while it works for this user's processes.
    Kernel,
    /// Everything on a CPU.
    Machine,
    /// A process that may belong to another user.
    Process(u32),
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Own => write!(f, "any process"),
            Asked::Kernel => write!(f, "the kernel"),
            Asked::Machine => write!(f, "the whole machine"),
            Asked::Process(pid) => write!(f, "process {pid}"),
        }
    }
}

/// Up to this `perf_event_paranoid`, all users may sample their own processes.
const OWN: i32 = 2;

/// Whether all users may sample their own processes at this `perf_event_paranoid`.
pub fn allows_own_processes(paranoid: i32) -> bool {
    paranoid <= OWN
}

/// Docker options that let a container sample its own processes. Docker knows the capability since 24, and its profile then allows the call.
pub const CONTAINER_REMEDY: &str = "docker run --cap-add PERFMON, or --security-opt seccomp=unconfined";

/// Writes the setting that forbids it, the command to change it, and what works without.
fn not_permitted(f: &mut fmt::Formatter<'_>, what: Asked, paranoid: Option<i32>) -> fmt::Result {
    write!(f, "not allowed to sample {what}: ")?;
    let level = match what {
        Asked::Own => OWN,
        Asked::Kernel => 1,
        Asked::Machine => 0,
        Asked::Process(_) => {
            return write!(
                f,
                "it belongs to another user, or has privileges that this user lacks.\
                 \n  do:       run as root\
                 \n  or:       {}\
                 \n  without:  -p PID for your own processes, or -- CMD",
                setcap_perf()
            );
        }
    };
    match paranoid {
        // Linux itself has no such level; some distributions add it.
        Some(level) if !allows_own_processes(level) => {
            return write!(
                f,
                "kernel.perf_event_paranoid is {level}: then kernels of Debian and Ubuntu give perf events to CAP_SYS_ADMIN alone.\
                 \n  do:       sudo sysctl kernel.perf_event_paranoid={OWN}, or run as root"
            );
        }
        Some(level) if what == Asked::Own => {
            return write!(
                f,
                "kernel.perf_event_paranoid is {level}, which allows it, but the system call is refused, as a container's seccomp profile \
                 does.\
                 \n  do:       {CONTAINER_REMEDY}"
            );
        }
        Some(level) => write!(f, "kernel.perf_event_paranoid is {level}, and this user lacks CAP_PERFMON.")?,
        None => write!(f, "this user lacks CAP_PERFMON.")?,
    }
    write!(
        f,
        "\n  do:       sudo sysctl kernel.perf_event_paranoid={level}, or run as root\
         \n  or:       {}",
        setcap_perf()
    )?;
    match what {
        Asked::Kernel => write!(f, "\n  without:  plumb record samples user code"),
        Asked::Machine => write!(f, "\n  without:  plumb record -- CMD, and -p PID for your own processes"),
        Asked::Own | Asked::Process(_) => Ok(()),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unsupported(error) | Error::NoRing(error) | Error::NoEvent { error, .. } => Some(error),
            Error::Target(error) => error.source(),
            Error::Machine(_)
            | Error::NotPermitted { .. }
            | Error::NoCounter(_)
            | Error::Privileged(_)
            | Error::OnlyInKernel(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_setting_and_what_to_type() {
        let text = |what| Error::NotPermitted { what, paranoid: Some(2) }.to_string();
        assert!(text(Asked::Machine).contains("perf_event_paranoid is 2"));
        assert!(text(Asked::Machine).contains("sysctl kernel.perf_event_paranoid=0"));
        assert!(text(Asked::Machine).contains("without:"));
        assert!(text(Asked::Kernel).contains("sysctl kernel.perf_event_paranoid=1"));
        let reserved = Error::NotPermitted { what: Asked::Own, paranoid: Some(3) }.to_string();
        assert!(reserved.contains("sysctl kernel.perf_event_paranoid=2") && !reserved.contains("setcap"));
        let refused = text(Asked::Own);
        assert!(refused.contains("seccomp=unconfined") && !refused.contains("sysctl"), "{refused}");
        assert!(text(Asked::Process(7)).contains("\n  do:       run as root\n"));
        assert!(!text(Asked::Process(7)).contains("paranoid"), "another user's process is no matter of that");
        let privileged = |name: &str| Error::Privileged(name.into()).to_string();
        assert!(privileged("syscalls:sys_enter_brk").contains("setcap cap_perfmon"));
        assert!(privileged("uprobe:libc.so.6:malloc").contains("CAP_SYS_ADMIN"));
        assert!(!privileged("uprobe:libc.so.6:malloc").contains("setcap"), "that would not help");
    }
}
