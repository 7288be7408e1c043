//! Derives the kind of a wait from the stack of the blocked thread.
//!
//! The tables here know functions of the kernel (Linux 5.15 to 6.18), of the C library and of language runtimes by name.

use crate::frame::Kind;
use crate::kernel::Cause;
use crate::names::without_parameters;
use crate::view::{NodeId, View};

/// The kind of thing that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A lock that another thread holds, or a condition that another is to bring about.
    Lock,
    /// The disk.
    Disk,
    /// Another program, by a socket or a pipe.
    Network,
    /// Any of several descriptors, or a signal that wakes: what it is about is not known.
    Descriptors,
    /// The end of a child or thread.
    Child,
    /// A time.
    Timer,
    /// Something else.
    Other,
    /// Work: the wait is its thread's way to do nothing.
    Idle,
}

impl WaitKind {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Lock => "lock",
            WaitKind::Disk => "disk",
            WaitKind::Network => "network",
            WaitKind::Descriptors => "descriptors",
            WaitKind::Child => "child",
            WaitKind::Timer => "timer",
            WaitKind::Other => "other",
            WaitKind::Idle => "idle",
        }
    }

    /// Returns the name shown to users.
    pub fn title(self) -> &'static str {
        match self {
            WaitKind::Lock => "locks and conditions",
            WaitKind::Disk => "disk I/O",
            WaitKind::Network => "network and pipes",
            WaitKind::Descriptors => "events on descriptors (epoll, poll, select)",
            WaitKind::Child => "children and threads to end",
            WaitKind::Timer => "timers",
            WaitKind::Other => "other",
            WaitKind::Idle => "idle",
        }
    }
}

/// Possible sources of the work that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkSource {
    /// None: the thread does not wait for work.
    None,
    /// Any of several descriptors.
    Several,
    /// A condition that other threads bring about.
    Condition,
    /// A signal or a queue of messages.
    One,
    /// A time.
    Time,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub kind: WaitKind,
    pub work: WorkSource,
}

/// Kernel functions in which a thread waits for the disk.
const DISK: [&str; 14] = [
    "io_schedule",
    "io_schedule_timeout",
    "folio_wait_bit_common",
    "folio_wait_bit",
    "folio_wait_writeback",
    "wait_on_page_bit",
    "bit_wait_io",
    "submit_bio_wait",
    "blk_execute_rq",
    "wait_for_completion_io",
    "jbd2_log_wait_commit",
    "wait_transaction_locked",
    "xlog_wait_on_iclog",
    "__wait_on_buffer",
];

/// Prefixes of kernel functions in which a thread waits for a lock.
const KERNEL_LOCKS: [&str; 9] = [
    "rwsem_down_",
    "__mutex_lock",
    "mutex_lock",
    "percpu_down_",
    "percpu_rwsem_wait",
    "flock_lock_inode",
    "posix_lock_inode",
    "fcntl_setlk",
    "__down_",
];

/// Prefixes of kernel functions that wait for another program.
const STREAMS: [&str; 8] =
    ["sock_", "sk_wait", "tcp_", "inet_", "unix_stream", "pipe_read", "anon_pipe_read", "pipe_write"];

/// System calls with the kind of their waits and where work may come from. `futex` and calls on any file are judged by functions.
const CALLS: [(&[&str], Wait); 8] = [
    (
        &["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"],
        Wait::of(WaitKind::Disk, WorkSource::None),
    ),
    (&["nanosleep", "clock_nanosleep"], Wait::of(WaitKind::Timer, WorkSource::Time)),
    (&["wait4", "waitid"], Wait::of(WaitKind::Child, WorkSource::None)),
    (
        &[
            "epoll_wait",
            "epoll_pwait",
            "epoll_pwait2",
            "poll",
            "ppoll",
            "select",
            "pselect6",
            "io_uring_enter",
            "io_getevents",
        ],
        Wait::of(WaitKind::Descriptors, WorkSource::Several),
    ),
    (&["accept", "accept4"], Wait::of(WaitKind::Network, WorkSource::Several)),
    (
        // A client that waits for its answer looks as a server's thread that waits for the next request.
        &["recvfrom", "recvmsg", "recvmmsg", "connect", "sendto", "sendmsg", "sendmmsg"],
        Wait::of(WaitKind::Network, WorkSource::None),
    ),
    (&["semop", "semtimedop", "flock", "fcntl"], Wait::of(WaitKind::Lock, WorkSource::None)),
    (
        &["pause", "rt_sigtimedwait", "rt_sigsuspend", "mq_timedreceive", "msgrcv"],
        Wait::of(WaitKind::Other, WorkSource::One),
    ),
];

/// Innermost functions of the program among which the one that waits by a futex is looked for.
const WAITERS: usize = 6;

/// Innermost functions of the kernel and the program among which one that takes a lock is looked for.
const INNERMOST: usize = 20;

/// Parts of names of functions that take a lock, in small letters.
const LOCKS: [&str; 12] = [
    "mutex_lock",
    "mutex_timedlock",
    "mutex_clocklock",
    "mutex_cond_lock",
    "rwlock",
    "lll_lock",
    "lock_slow",
    "lock_contended",
    "runtime.lock",
    "sync.(*mutex).lock",
    "sync.(*rwmutex)",
    "objectmonitor::enter",
];

/// Parts of names of functions that wait for a condition.
const CONDITIONS: [&str; 8] = [
    "cond_wait",
    "cond_timedwait",
    "cond_clockwait",
    "condvar",
    "condition_variable",
    "runtime.notesleep",
    "runtime.notetsleep",
    "runtime.stopm",
];

/// Innermost functions of the program whose names may say that a wait for descriptors is one for a lock: a program that queues for locks of its own
/// is woken by a descriptor.
const QUEUES: usize = 10;

/// Parts of names of functions that wait for a thread's end.
const JOINS: [&str; 2] = ["pthread_join", "join_ex"];

impl Wait {
    const fn of(kind: WaitKind, work: WorkSource) -> Self {
        Self { kind, work }
    }
}

/// Returns the wait at a node whose cause and system call are known.
pub(super) fn wait_at(view: &View<'_>, node: NodeId, (cause, call): (Cause, &str)) -> Wait {
    let frames = || view.stack(node);
    let kernel = || frames().filter(|frame| frame.kind == Kind::Kernel).map(|frame| &*frame.name);
    let begins = |names: &[&str]| kernel().any(|name| names.iter().any(|begin| name.starts_with(begin)));
    if kernel().any(|name| DISK.contains(&name)) {
        return Wait::of(WaitKind::Disk, WorkSource::None);
    }
    if begins(&KERNEL_LOCKS) {
        return Wait::of(WaitKind::Lock, WorkSource::None);
    }
    if call.starts_with("futex") {
        return futex(frames().filter(|frame| frame.kind == Kind::User).map(|frame| &*frame.name));
    }
    if let Some(&(_, wait)) = CALLS.iter().find(|(calls, _)| calls.contains(&call)) {
        let mut functions = frames().filter(|frame| frame.kind == Kind::User).take(QUEUES);
        let is_lock = wait.kind == WaitKind::Descriptors && functions.any(|frame| says_lock(&frame.name));
        return if is_lock { Wait::of(WaitKind::Lock, WorkSource::None) } else { wait };
    }
    match cause {
        Cause::Fork => Wait::of(WaitKind::Child, WorkSource::None),
        Cause::Fault => Wait::of(WaitKind::Disk, WorkSource::None),
        Cause::Thread => Wait::of(WaitKind::Other, WorkSource::Several),
        _ if begins(&STREAMS) => Wait::of(WaitKind::Network, WorkSource::None),
        _ => Wait::of(WaitKind::Other, WorkSource::None),
    }
}

/// Finds the function that takes the lock for which a blocked thread certainly waits: its place among the names on the stack, innermost first. Those of
/// the kernel or of the program alone are enough.
pub fn lock_taken_at<'n>(functions: impl Iterator<Item = &'n str>) -> Option<usize> {
    let mut found = None;
    for (place, name) in functions.take(INNERMOST).enumerate() {
        let in_kernel = KERNEL_LOCKS.iter().any(|begin| name.starts_with(begin));
        let name = without_parameters(name).to_lowercase();
        let is = |names: &[&str]| names.iter().any(|part| name.contains(part));
        match in_kernel || is(&LOCKS) {
            true => found = Some(place),
            // A condition's lock is taken again by the function that waits for the condition.
            false if found.is_some() || is(&CONDITIONS) || is(&JOINS) => return found,
            false => {}
        }
    }
    found
}

/// Whether a function's name has the word "lock": `LockAcquire`, `WaitOnLock`, `lock_wait`, but neither `unlock` nor `block`.
fn says_lock(name: &str) -> bool {
    let mut depth = 0_usize;
    let mut word = String::new();
    let mut says = false;
    for letter in without_parameters(name).chars().chain(['_']) {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            // The names before are those of namespaces and types.
            ':' => (word, says) = (String::new(), false),
            'a'..='z' => word.push(letter),
            _ => {
                says |= word == "lock";
                word = letter.is_ascii_uppercase().then(|| letter.to_ascii_lowercase()).into_iter().collect();
            }
        }
    }
    says
}

/// A futex's wait, by the functions of the program, innermost first. One that nobody knows may be a lock's.
fn futex<'n>(functions: impl Iterator<Item = &'n str>) -> Wait {
    for name in functions.take(WAITERS) {
        let name = without_parameters(name).to_lowercase();
        let is = |names: &[&str]| names.iter().any(|part| name.contains(part));
        if is(&LOCKS) {
            break;
        }
        if is(&CONDITIONS) {
            return Wait::of(WaitKind::Lock, WorkSource::Condition);
        }
        if is(&JOINS) {
            return Wait::of(WaitKind::Child, WorkSource::None);
        }
    }
    Wait::of(WaitKind::Lock, WorkSource::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_a_word_of_a_functions_name() {
        for name in [
            "LockAcquireExtended",
            "WaitOnLock",
            "row_lock_wait",
            "lock",
            "db::Table::lock(int)",
            "a::lock<int>",
        ] {
            assert!(says_lock(name), "{name}");
        }
        for name in [
            "WaitEventSetWaitBlock",
            "clock_wait",
            "unlock_and_wait",
            "iterate_unlocked",
            "Clock::tick",
            "run(lock*)",
        ] {
            assert!(!says_lock(name), "{name}");
        }
    }

    #[test]
    fn a_wait_for_a_lock_is_certain_or_not_told() {
        let at = |names: &[&str]| lock_taken_at(names.iter().copied());
        assert_eq!(
            at(&["schedule", "futex_wait", "do_syscall_64", "__lll_lock_wait", "pthread_mutex_lock", "get"]),
            Some(4)
        );
        assert_eq!(at(&["schedule", "rwsem_down_write_slowpath", "do_mmap", "mmap"]), Some(1));
        assert_eq!(
            at(&["runtime.gopark", "sync.(*Mutex).lockSlow", "sync.(*Mutex).Lock", "main.put"]),
            Some(2)
        );
        assert_eq!(at(&["futex_wait", "__futex_wait_common", "pthread_cond_wait", "mutex_lock_all"]), None);
        assert_eq!(at(&["futex_wait", "pthread_join", "main"]), None);
        assert_eq!(at(&["ep_poll", "epoll_wait", "main"]), None);
    }

    #[test]
    fn futexes_are_told_apart_by_who_waits() {
        let work = |names: &[&str]| futex(names.iter().copied()).work;
        assert_eq!(
            work(&["__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "pop"]),
            WorkSource::Condition
        );
        assert_eq!(
            work(&["std::sys::sync::condvar::futex::Condvar::wait_optional_timeout"]),
            WorkSource::Condition
        );
        assert_eq!(work(&["__lll_lock_wait", "pthread_mutex_lock", "pthread_cond_wait"]), WorkSource::None);
        assert_eq!(
            work(&["parking_lot_core::parking_lot::park", "parking_lot::raw_mutex::RawMutex::lock_slow"]),
            WorkSource::None
        );
        assert_eq!(work(&["sem_wait"]), WorkSource::None, "it may be a lock");
        assert_eq!(work(&[]), WorkSource::None);
        assert_eq!(futex(["__pthread_clockjoin_ex"].into_iter()).kind, WaitKind::Child);
    }
}
