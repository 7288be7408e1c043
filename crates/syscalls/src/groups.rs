//! Groups of related calls, like strace's.

use crate::Signature;

/// Groups and their calls.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "net",
        &[
            "socket",
            "socketpair",
            "bind",
            "connect",
            "listen",
            "accept",
            "accept4",
            "getsockname",
            "getpeername",
            "sendto",
            "recvfrom",
            "sendmsg",
            "recvmsg",
            "sendmmsg",
            "recvmmsg",
            "shutdown",
            "setsockopt",
            "getsockopt",
        ],
    ),
    (
        "memory",
        &[
            "brk",
            "mmap",
            "munmap",
            "mprotect",
            "mremap",
            "msync",
            "madvise",
            "mincore",
            "mlock",
            "mlock2",
            "munlock",
            "mlockall",
            "munlockall",
            "mbind",
            "set_mempolicy",
            "get_mempolicy",
            "migrate_pages",
            "move_pages",
            "remap_file_pages",
            "pkey_mprotect",
            "pkey_alloc",
            "pkey_free",
            "shmat",
            "shmdt",
            "process_madvise",
            "memfd_secret",
            "mseal",
        ],
    ),
    (
        "process",
        &[
            "clone",
            "clone3",
            "fork",
            "vfork",
            "execve",
            "execveat",
            "exit",
            "exit_group",
            "wait4",
            "waitid",
            "kill",
            "tkill",
            "tgkill",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "pidfd_open",
            "pidfd_send_signal",
            "unshare",
            "setns",
            "ptrace",
        ],
    ),
    (
        "signal",
        &[
            "rt_sigaction",
            "rt_sigprocmask",
            "rt_sigpending",
            "rt_sigsuspend",
            "rt_sigtimedwait",
            "rt_sigreturn",
            "rt_sigqueueinfo",
            "rt_tgsigqueueinfo",
            "sigaltstack",
            "kill",
            "tkill",
            "tgkill",
            "pause",
            "signalfd",
            "signalfd4",
            "pidfd_send_signal",
        ],
    ),
    (
        "ipc",
        &[
            "shmget",
            "shmat",
            "shmdt",
            "shmctl",
            "semget",
            "semop",
            "semctl",
            "semtimedop",
            "msgget",
            "msgsnd",
            "msgrcv",
            "msgctl",
        ],
    ),
];

/// Whether a call is in a group: `file` has the calls that take a path, `desc` those that take or return a descriptor. `None` if the group
/// does not exist.
pub fn in_group(group: &str, call: &str, signature: &Signature) -> Option<bool> {
    match group {
        "file" => Some(signature.has_path() || call == "getcwd"),
        "desc" => Some(signature.has_descriptor()),
        _ => GROUPS.iter().find(|(name, _)| *name == group).map(|(_, calls)| calls.contains(&call)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Abi, number};

    #[test]
    fn calls_of_groups_exist() {
        for call in GROUPS.iter().flat_map(|(_, calls)| *calls) {
            assert!(number(Abi::X86_64, call).is_some(), "{call}");
        }
        let none = Signature::default();
        assert_eq!(in_group("net", "connect", &none), Some(true));
        assert_eq!(in_group("net", "mmap", &none), Some(false));
        assert_eq!(in_group("nets", "connect", &none), None);
    }
}
