//! Clocks and accounting: time, CPU usage, and limits.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};

/// Returns CLOCK_MONOTONIC in nanoseconds: the clock of all records.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time of this thread so far, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to a live timespec; zeroed is valid should the call fail, which it can't for the clocks of above.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// CPU time in user code and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user code.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl CpuTime {
    /// Returns the sum.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// Returns the sum in nanoseconds.
    pub fn total_ns(self) -> u64 {
        nanoseconds(self.total())
    }

    /// Returns the CPU time since `before`.
    pub fn since(self, before: CpuTime) -> CpuTime {
        CpuTime {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }
}

impl std::ops::AddAssign for CpuTime {
    fn add_assign(&mut self, other: CpuTime) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// Converts a duration to nanoseconds, saturating.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Nice value by which a thread that prepares what saves time later stands back: a third of the weight of others. With the lowest
/// priority it would have seconds to wait for each tenth on a machine whose CPUs are all busy.
const STAND_BACK: libc::c_int = 5;

/// Lowers the priority of this thread by a nice value of 5.
pub fn be_nice() {
    // If refused, the thread keeps its priority.
    set_nice((nice() + STAND_BACK).min(19));
}

/// A raised thread priority, restored on drop. A recorder needs little CPU time, but promptly: with a dozen busy
/// threads per CPU it would otherwise get a twelfth, which is not enough to empty the ring buffers before they are full.
#[derive(Debug)]
pub struct Priority {
    before: libc::c_int,
    /// Tied to the current thread.
    thread: PhantomData<*const ()>,
}

impl Priority {
    /// More than ten times the weight of others, so that the thread runs as soon as it wakes.
    const NICE: libc::c_int = -15;

    /// Raises the priority of this thread; `None` if not permitted, already done, or the user runs plumb with nice.
    pub fn raise() -> Option<Self> {
        let before = nice();
        let is_raised = (Self::NICE + 1..=0).contains(&before) && set_nice(Self::NICE);
        is_raised.then_some(Self { before, thread: PhantomData })
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        // Lowering the priority is always permitted.
        set_nice(self.before);
    }
}

/// The nice value of this thread.
fn nice() -> libc::c_int {
    // SAFETY: no pointers; 0 is the calling thread. This can't fail for it, so that -1 is a priority.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Sets the priority of this thread; returns whether that was permitted.
fn set_nice(nice: libc::c_int) -> bool {
    // SAFETY: no pointers. Linux takes 0 for the calling thread, not its process (setpriority(2), "C library/kernel
    // differences").
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

/// Returns the CPU time of all threads of this process so far.
pub fn own_cpu_time() -> CpuTime {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live rusage; zeroed is valid should the call fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    of_rusage(&usage)
}

/// The kernel's accounting for a process and the descendants that it waited for (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time. The sum is exact; its division is estimated from ticks.
    pub cpu: CpuTime,
    /// Peak resident memory of one of them, in bytes.
    pub max_rss_bytes: u64,
    /// Minor and major page faults (without and with disk I/O).
    pub faults: [u64; 2],
    /// Voluntary and involuntary context switches.
    pub switches: [u64; 2],
    /// 512-byte blocks read from and written to disks.
    pub blocks: [u64; 2],
}

impl Usage {
    /// Converts a `struct rusage`.
    pub fn of(usage: &libc::rusage) -> Self {
        let number = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Self {
            cpu: of_rusage(usage),
            max_rss_bytes: number(usage.ru_maxrss) << 10,
            faults: [number(usage.ru_minflt), number(usage.ru_majflt)],
            switches: [number(usage.ru_nvcsw), number(usage.ru_nivcsw)],
            blocks: [number(usage.ru_inblock), number(usage.ru_oublock)],
        }
    }
}

/// Returns the CPU time in a `struct rusage`.
pub fn of_rusage(usage: &libc::rusage) -> CpuTime {
    let time =
        |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    CpuTime { user: time(usage.ru_utime), system: time(usage.ru_stime) }
}

/// Returns the ticks of /proc/PID/stat per second.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes no pointer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0).unwrap_or(100)
}

/// Raises the limit of open files to the hard limit: one event per thread and CPU takes many, and so do the connections of a server.
pub fn raise_file_limit() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Returns the size of a memory page in bytes.
pub fn page_size() -> usize {
    // SAFETY: takes no pointer.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_priority_is_the_old_one_afterwards() {
        // In its own thread, so that others are not affected.
        let (before, during, after) = std::thread::spawn(|| {
            let before = nice();
            let raised = Priority::raise();
            let again = Priority::raise();
            let during = (nice(), raised.is_some(), again.is_some());
            drop((again, raised));
            (before, during, nice())
        })
        .join()
        .expect("it ends");
        assert_eq!(after, before);
        match during {
            (now, true, again) => assert!(now == Priority::NICE && !again, "once"),
            // Not permitted to this user, or plumb runs with nice.
            (now, false, _) => assert_eq!(now, before),
        }
    }

    #[test]
    fn who_is_to_be_nice_stays_nice() {
        let both = std::thread::spawn(|| {
            let before = nice();
            be_nice();
            let _raised = Priority::raise();
            (before, nice())
        });
        let (before, after) = both.join().expect("it ends");
        assert_eq!(after, (before + STAND_BACK).min(19));
    }
}
