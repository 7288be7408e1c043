//! Reasons why a process or a thread has no stack to show, with advice in their messages.

use std::fmt;
use std::io;

use plumb_process::{FOREIGN_PROC, UnsupportedMachine};

/// The reason why a process can't be inspected.
#[derive(Debug)]
pub enum Refusal {
    /// Threads of this architecture's processes can't be inspected yet.
    Machine(UnsupportedMachine),
    /// The process does not exist.
    NoSuchProcess(u32),
    /// `/proc` belongs to another PID namespace, where this PID is another process.
    ForeignProc(u32),
    /// The process ended during the inspection.
    Gone(u32),
    /// A debugger, or another instance of plumb, traces it.
    Traced {
        /// The process.
        pid: u32,
        /// The tracing process.
        tracer: u32,
    },
    /// The process belongs to another user.
    OtherUser(u32),
    /// This user may not trace it, by the rule of `kernel.yama.ptrace_scope`
    /// (Documentation/admin-guide/LSM/Yama.rst) where that is above 0.
    NotPermitted {
        /// The process.
        pid: u32,
        /// The setting; 0 if it does not exist.
        scope: u32,
        /// Whether this user is root.
        is_root: bool,
    },
    /// Another system error.
    System {
        /// The process.
        pid: u32,
        /// The error.
        error: io::Error,
    },
}

impl Refusal {
    /// The reason for ptrace(2)'s refusal to seize a thread of `pid`.
    pub(super) fn of(pid: u32, error: io::Error) -> Refusal {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return Refusal::System { pid, error };
        }
        if let Some(tracer) = plumb_process::tracer(pid) {
            return Refusal::Traced { pid, tracer };
        }
        let own = plumb_process::user(std::process::id());
        if plumb_process::user(pid) != own {
            return Refusal::OtherUser(pid);
        }
        let setting = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
        Refusal::NotPermitted { pid, scope: setting.trim().parse().unwrap_or(0), is_root: own == Some(0) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Machine(error) => error.fmt(f),
            Refusal::NoSuchProcess(pid) => write!(f, "there is no process {pid}"),
            Refusal::ForeignProc(pid) => write!(f, "process {pid} is ambiguous: {FOREIGN_PROC}"),
            Refusal::Gone(pid) => write!(f, "process {pid} ended while it was looked at"),
            Refusal::Traced { pid, tracer } => {
                write!(f, "process {pid} is under a debugger already, process {tracer}, and can't have two")
            }
            Refusal::OtherUser(pid) => {
                write!(f, "process {pid} is another user's\n  do:       sudo plumb stack -p {pid}")
            }
            Refusal::NotPermitted { pid, scope: 0..=2, is_root: true } => write!(
                f,
                "not allowed to look into process {pid} even as root: a container or a security module forbids ptrace \
                 (docker run --cap-add SYS_PTRACE)"
            ),
            Refusal::NotPermitted { pid, scope, .. } => not_permitted(f, *pid, *scope),
            Refusal::System { pid, error } => write!(f, "process {pid} can't be stopped: {error}"),
        }
    }
}

fn not_permitted(f: &mut fmt::Formatter<'_>, pid: u32, scope: u32) -> fmt::Result {
    match scope {
        0 => write!(
            f,
            "not allowed to look into process {pid}: it has privileges that this user lacks, or a container forbids \
             ptrace (docker run --cap-add SYS_PTRACE)\n  do:       sudo plumb stack -p {pid}"
        ),
        1 => write!(
            f,
            "not allowed to look into process {pid}: kernel.yama.ptrace_scope is 1, by which only a parent may\
             \n  do:       sudo plumb stack -p {pid}\
             \n  or:       sudo sysctl kernel.yama.ptrace_scope=0"
        ),
        2 => write!(
            f,
            "not allowed to look into process {pid}: kernel.yama.ptrace_scope is 2, by which it takes CAP_SYS_PTRACE\
             \n  do:       sudo plumb stack -p {pid}"
        ),
        _ => write!(
            f,
            "not allowed to look into process {pid}: kernel.yama.ptrace_scope is {scope}, by which nobody may, until the \
             machine is booted again with another setting"
        ),
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Refusal::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The reason why a thread has no stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStack {
    /// The thread ended before or during the inspection: a main thread that has ended stays until the others have.
    Ended,
    /// The thread is in uninterruptible sleep (state `D`) and can't be stopped, and this user may not know where it waits.
    DoesNotStop,
    /// The thread is a kernel thread.
    KernelThread,
    /// The thread runs 32-bit code, which is not unwound.
    Not64Bit,
}

impl NoStack {
    /// Stable name, for machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            NoStack::Ended => "ended",
            NoStack::DoesNotStop => "does-not-stop",
            NoStack::KernelThread => "kernel-thread",
            NoStack::Not64Bit => "not-64-bit",
        }
    }

    /// A short description.
    pub fn text(self) -> &'static str {
        match self {
            NoStack::Ended => "it has ended",
            NoStack::DoesNotStop => "it waits in the kernel and did not stop",
            NoStack::KernelThread => "it is a thread of the kernel",
            NoStack::Not64Bit => "it runs 32-bit code, which is not unwound",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_setting_and_what_to_type() {
        let text = |scope| Refusal::NotPermitted { pid: 7, scope, is_root: false }.to_string();
        assert!(
            text(1).contains("ptrace_scope is 1") && text(1).contains("sysctl kernel.yama.ptrace_scope=0")
        );
        assert!(text(2).contains("sudo plumb stack -p 7") && !text(2).contains("sysctl"));
        assert!(text(3).contains("nobody may"));
        assert!(text(0).contains("sudo plumb stack -p 7"));
        let root = Refusal::NotPermitted { pid: 7, scope: 1, is_root: true }.to_string();
        assert!(root.contains("SYS_PTRACE") && !root.contains("sudo"), "root needs no sudo");
    }
}
