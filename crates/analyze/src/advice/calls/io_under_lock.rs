//! Rule: a thread waits for a read or write while it holds a lock.
//!
//! Held locks are recognized as in `sleep_under_lock`. A thread that reads and then hands over the result through a
//! contended queue holds no lock while it reads: others wait for the queue's lock only briefly.

use super::sleep_under_lock::{LEAST_SHARE, LEAST_SLEEPS, LEAST_WAITED, LockedWaits};
use super::{CallEvent, CallRule, Rule, in_percent, part, text};

/// Calls that may wait for a file, a device or another program.
const CALLS: &[&str] = &[
    "read",
    "pread64",
    "readv",
    "recvfrom",
    "recvmsg",
    "write",
    "pwrite64",
    "writev",
    "sendto",
    "sendmsg",
    "fsync",
    "fdatasync",
    "connect",
    "accept4",
    "wait4",
];
/// Minimum duration of a call that counts as a wait, in nanoseconds.
const LEAST_NS: u64 = 100_000;

pub(in crate::advice) fn rule() -> CallRule {
    let rule = Rule {
        name: "io-under-lock",
        claim: "holds a lock that others wait for while it reads or writes",
        pattern: "a thread waits for a read or a write, then wakes those that waited for a lock meanwhile: it held the lock",
        threshold: text(format!(
            "{LEAST_SLEEPS} calls of {} ms, {} of the elapsed time, others wait for {} of that",
            LEAST_NS as f64 / 1e6,
            in_percent(LEAST_SHARE),
            part(LEAST_WAITED)
        )),
        remedy: "read before the lock is taken, write after it is released; hold it only to take or to store the result",
        bound: "of the elapsed time what is waited for with the lock",
        source: "futex(7): who waits for a lock is woken by its holder; the numbers are judgement",
    };
    CallRule {
        also_watched: &["futex"],
        ..CallRule::new(rule, CALLS, || {
            Box::new(LockedWaits::of(is_wait, ["calls with the lock", "of the elapsed time in them"]))
        })
    }
}

fn is_wait(call: &CallEvent<'_>) -> bool {
    call.wall_ns >= LEAST_NS && call.result >= 0 && CALLS.contains(&call.name)
}
