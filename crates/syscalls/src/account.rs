//! Aggregated system calls: their number, their failures by error, their return values, and their latencies.
//!
//! Times include the tracing overhead; [`Times::without`] subtracts it. Percentiles are computed from buckets that double in width,
//! so their error is about a third.
//!
//! Elsewhere: counting calls (capture-bpf).

use std::collections::BTreeMap;

/// Calls that return a number of bytes.
#[rustfmt::skip]
const GIVE_BYTES: &[&str] = &[
    "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2", "sendto", "recvfrom",
    "sendmsg", "recvmsg", "sendfile", "splice", "tee", "vmsplice", "copy_file_range", "getdents", "getdents64", "readlink",
    "readlinkat", "getcwd", "getrandom", "getxattr", "lgetxattr", "fgetxattr", "listxattr", "llistxattr", "flistxattr",
    "process_vm_readv", "process_vm_writev", "mq_timedreceive", "msgrcv",
];

/// Whether a call, given by its name, returns a number of bytes.
pub fn gives_bytes(name: &str) -> bool {
    GIVE_BYTES.contains(&name)
}

/// Calls whose first argument is a path, and those whose second is.
#[rustfmt::skip]
const PATHS: [&[&str]; 2] = [
    &[
        "open", "creat", "stat", "lstat", "statfs", "access", "execve", "unlink", "rmdir", "mkdir", "chdir",
        "readlink", "truncate", "chmod", "chown", "lchown", "rename", "link", "symlink", "mknod", "getxattr",
        "lgetxattr", "setxattr", "lsetxattr", "listxattr", "llistxattr", "memfd_create",
    ],
    &[
        "openat", "openat2", "newfstatat", "statx", "faccessat", "faccessat2", "execveat", "unlinkat",
        "mkdirat", "mknodat", "readlinkat", "fchmodat", "fchownat", "renameat", "renameat2", "linkat",
        "utimensat", "name_to_handle_at", "inotify_add_watch",
    ],
];

/// Other calls whose first argument is a descriptor.
#[rustfmt::skip]
const OF_FILES: &[&str] = &[
    "lseek", "fstat", "ioctl", "fcntl", "fsync", "fdatasync", "ftruncate", "fallocate", "fadvise64", "flock", "fchmod", "fchown",
    "fsetxattr", "accept", "accept4", "connect", "listen", "shutdown", "setsockopt", "getsockopt", "getpeername", "getsockname",
    "sendmmsg", "recvmmsg", "readahead", "sync_file_range", "epoll_wait", "epoll_pwait", "epoll_pwait2", "epoll_ctl",
];

/// Whether the first argument of a call, given by its name, is a descriptor that is still open when the call ends.
pub fn takes_file(name: &str) -> bool {
    // The calls that return bytes without taking a descriptor.
    const NOT: [&str; 11] = [
        "readlink",
        "readlinkat",
        "getcwd",
        "getrandom",
        "getxattr",
        "lgetxattr",
        "listxattr",
        "llistxattr",
        "process_vm_readv",
        "process_vm_writev",
        "msgrcv",
    ];
    OF_FILES.contains(&name) || gives_bytes(name) && !NOT.contains(&name)
}

/// Index, from 0, of the argument that is a path or a name, by the call's name.
pub fn path_argument(name: &str) -> Option<u8> {
    PATHS.iter().position(|names| names.contains(&name)).and_then(|index| u8::try_from(index).ok())
}

/// Aggregate of the calls of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Number of completed calls.
    pub calls: u64,
    /// Number of failed calls.
    pub failed: u64,
    /// Failed calls by error number.
    pub errors: BTreeMap<u32, u64>,
    /// Sum of the positive return values.
    pub given: u64,
    /// Latencies; `None` if they were not measured.
    pub times: Option<Times>,
}

impl Account {
    /// Adds another aggregate.
    pub fn add(&mut self, other: &Account) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.given = self.given.saturating_add(other.given);
        for (&error, &count) in &other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        match (&mut self.times, &other.times) {
            (Some(times), Some(others)) => times.add(others),
            (times @ None, Some(others)) => *times = Some(others.clone()),
            (_, None) => {}
        }
    }
}

/// Aggregated latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Number of measured calls. Calls that began before the trace are not measured.
    pub calls: u64,
    /// Wall-clock time, in nanoseconds.
    pub wall_ns: u64,
    /// Part of it that the thread was blocked, waiting for an event.
    pub blocked_ns: u64,
    /// Part of it that the thread was preempted: runnable, while another thread had the CPU.
    pub preempted_ns: u64,
    /// Part of it that the thread waited for a CPU after it was woken (run-queue wait).
    pub queued_ns: u64,
    /// Number of calls of 2ⁿ to 2ⁿ⁺¹ nanoseconds, by n.
    pub buckets: Vec<u64>,
    /// The longest call.
    pub longest: Option<Longest>,
}

/// The longest of the calls in an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// Latency in nanoseconds.
    pub ns: u64,
    /// End of the call, by the monotonic clock.
    pub end_ns: u64,
    /// Return value.
    pub result: i64,
    /// Arguments.
    pub args: [u64; 6],
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// The path or other string argument; empty if the call has none.
    pub text: String,
}

impl Times {
    /// Time on the CPU, in nanoseconds.
    pub fn on_cpu_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.blocked_ns + self.preempted_ns + self.queued_ns)
    }

    /// Mean latency, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.wall_ns as f64 / self.calls as f64 }
    }

    /// The latency that this share of the calls did not exceed, in nanoseconds; 0 without calls.
    pub fn percentile_ns(&self, share: f64) -> f64 {
        let wanted = share.clamp(0.0, 1.0) * self.calls as f64;
        let mut before = 0.0;
        for (bucket, &count) in self.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let through = before + count as f64;
            if through >= wanted {
                let low = 2_f64.powi(bucket as i32);
                let inside = low + low * (wanted - before) / count as f64;
                return self.longest.as_ref().map_or(inside, |longest| inside.min(longest.ns as f64));
            }
            before = through;
        }
        0.0
    }

    /// Subtracts the tracing overhead of `each_ns` per call. Off-CPU time does not contain overhead.
    pub fn without(&self, each_ns: u64) -> Self {
        let most = self.on_cpu_ns();
        let longest = self.longest.clone();
        Times {
            wall_ns: self.wall_ns - most.min(self.calls.saturating_mul(each_ns)),
            longest: longest.map(|one| Longest { ns: one.ns.saturating_sub(each_ns), ..one }),
            ..self.clone()
        }
    }

    fn add(&mut self, other: &Times) {
        self.calls += other.calls;
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.blocked_ns = self.blocked_ns.saturating_add(other.blocked_ns);
        self.preempted_ns = self.preempted_ns.saturating_add(other.preempted_ns);
        self.queued_ns = self.queued_ns.saturating_add(other.queued_ns);
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, count)| *sum += count);
        let ns = |longest: &Option<Longest>| longest.as_ref().map_or(0, |longest| longest.ns);
        if ns(&other.longest) > ns(&self.longest) {
            self.longest = other.longest.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(buckets: &[(usize, u64)], wall_ns: u64, longest_ns: u64) -> Times {
        let mut times = Times { wall_ns, buckets: vec![0; 40], ..Times::default() };
        for &(bucket, count) in buckets {
            times.buckets[bucket] = count;
            times.calls += count;
        }
        times.longest = Some(Longest { ns: longest_ns, ..Longest::default() });
        times
    }

    #[test]
    fn percentiles_are_within_the_bucket_that_they_fall_into() {
        // 90 calls of 128 to 255 ns, 9 of about a microsecond, one of 70 µs.
        let times = times(&[(7, 90), (10, 9), (16, 1)], 0, 70_000);
        assert!((128.0..256.0).contains(&times.percentile_ns(0.5)));
        assert!((1024.0..2048.0).contains(&times.percentile_ns(0.95)));
        assert_eq!(times.percentile_ns(1.0), 70_000.0, "no more than the longest");
        assert_eq!(Times::default().percentile_ns(0.5), 0.0);
    }

    #[test]
    fn what_seeing_costs_is_taken_off_time_on_the_processor() {
        let mut times = times(&[(10, 100)], 150_000, 2000);
        times.blocked_ns = 50_000;
        let without = times.without(100);
        assert_eq!((without.wall_ns, without.on_cpu_ns(), without.blocked_ns), (140_000, 90_000, 50_000));
        assert_eq!(without.longest.map(|longest| longest.ns), Some(1900));
        assert_eq!(times.without(10_000).on_cpu_ns(), 0, "never less than nothing");
    }

    #[test]
    fn accounts_add_up() {
        let errors = BTreeMap::from([(2, 3)]);
        let one = Account { calls: 5, failed: 3, errors, given: 7, times: Some(times(&[(3, 5)], 60, 15)) };
        let mut sum = Account::default();
        sum.add(&one);
        sum.add(&one);
        assert_eq!((sum.calls, sum.failed, sum.given, sum.errors[&2]), (10, 6, 14, 6));
        let times = sum.times.expect("it has times");
        assert_eq!((times.calls, times.wall_ns, times.buckets[3]), (10, 120, 10));
        assert_eq!(times.longest.map(|longest| longest.ns), Some(15));
    }
}
