//! The state of one thread, and where it sleeps in the kernel, from `/proc/PID/task/TID`.
//!
//! Every result is `None` or empty if the thread is gone or access is denied. Uses no system call other than reading
//! files; the thread is not disturbed.

use crate::pid::fields_of_stat;

/// Returns the one-letter state of proc_pid_stat(5): `R` running, `S` sleeping, `D` uninterruptible sleep, `T` stopped by a
/// signal, `t` stopped by a tracer, `Z` dead, `I` idle.
pub fn state(pid: u32, tid: u32) -> Option<char> {
    let text = std::fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    fields_of_stat(&text)?.next()?.chars().next()
}

/// Returns the process that traces this one, if any.
pub fn tracer(pid: u32) -> Option<u32> {
    field(&status(pid)?, "TracerPid:", 0).filter(|&pid| pid != 0)
}

/// Returns the effective user id of a process.
pub fn user(pid: u32) -> Option<u32> {
    field(&status(pid)?, "Uid:", 1)
}

fn status(pid: u32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

/// Returns number `index` after `name` in a status file.
fn field(status: &str, name: &str, index: usize) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().nth(index)?.parse().ok()
}

/// The user-space location of a thread that waits in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingAt {
    /// User stack pointer.
    pub sp: u64,
    /// Program counter.
    pub pc: u64,
    /// Arguments of the current system call; `None`: it is not in one, but for example in a page fault.
    pub arguments: Option<[u64; 6]>,
}

/// Returns the location of a thread that waits in the kernel, from `/proc/PID/task/TID/syscall` (fs/proc/base.c, `proc_pid_syscall`).
/// `None` while it runs.
pub fn waits_at(pid: u32, tid: u32) -> Option<WaitingAt> {
    waits_at_in(&std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?)
}

fn waits_at_in(text: &str) -> Option<WaitingAt> {
    // The number of the system call comes first, or -1.
    let words = text.split_whitespace().skip(1);
    let words: Option<Vec<u64>> =
        words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
    match *words? {
        [a, b, c, d, e, f, sp, pc] => Some(WaitingAt { sp, pc, arguments: Some([a, b, c, d, e, f]) }),
        [sp, pc] => Some(WaitingAt { sp, pc, arguments: None }),
        _ => None,
    }
}

/// Returns the kernel functions that a waiting thread is in, innermost first, as `name+0xoffset`. Needs CAP_SYS_ADMIN. For a
/// running thread the kernel only guesses; check with [`waits_at`].
pub fn kernel_stack(pid: u32, tid: u32) -> Option<Vec<String>> {
    Some(kernel_stack_in(&std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stack")).ok()?))
}

/// Parses lines such as `[<0>] futex_do_wait+0x32/0x50`, with ` [module]` appended for modules (`proc_pid_stack`).
fn kernel_stack_in(text: &str) -> Vec<String> {
    let place = |line: &str| {
        let (_, rest) = line.split_once("] ")?;
        let mut words = rest.split_whitespace();
        let (place, _size) = words.next()?.rsplit_once('/')?;
        Some(words.next().map_or_else(|| place.to_owned(), |module| format!("{place} {module}")))
    };
    text.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_stacks_are_read() {
        let text = "[<0>] futex_do_wait+0x32/0x50\n[<0>] nfs_wait+0x1/0x8 [nfs]\n[<0>] entry\n";
        assert_eq!(kernel_stack_in(text), ["futex_do_wait+0x32", "nfs_wait+0x1 [nfs]"]);
    }

    #[test]
    fn system_calls_are_read() {
        let text = "230 0x0 0x0 0x7ffd 0x0 0x0 0x0 0x7ffd1000 0x7f0012\n";
        let at = WaitingAt { sp: 0x7ffd_1000, pc: 0x7f_0012, arguments: None };
        assert_eq!(waits_at_in(text), Some(WaitingAt { arguments: Some([0, 0, 0x7ffd, 0, 0, 0]), ..at }));
        assert_eq!(waits_at_in("-1 0x7ffd1000 0x7f0012\n"), Some(at));
        assert_eq!(waits_at_in("running\n"), None);
    }

    #[test]
    fn knows_ourselves() {
        let pid = std::process::id();
        assert!(matches!(state(pid, pid), Some('R' | 'S' | 'D')));
        assert_eq!(state(pid, 0), None);
        let status = "Name:\tx\nTracerPid:\t77\nUid:\t5\t6\t7\t8\n";
        assert_eq!(field(status, "TracerPid:", 0), Some(77));
        assert_eq!(field(status, "Uid:", 1), Some(6));
    }
}
