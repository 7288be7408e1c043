//! Clocks and accounting: what time it is, who used how much processor time, and limits.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::Duration;

/// CLOCK_MONOTONIC in nanoseconds: the clock of all records.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Processor time of this thread so far, in nanoseconds.
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

/// Processor time in user code and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user code.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl CpuTime {
    /// Both.
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// Both, in nanoseconds.
    pub fn total_ns(self) -> u64 {
        nanoseconds(self.total())
    }

    /// What was used since `before`.
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

/// A length of time in nanoseconds, or the longest that there is a number for.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Lets all others go before this thread.
pub fn be_nice() {
    // If it is refused, the thread is as important as others.
    set_nice(19);
}

/// Lets a thread go before others for as long as this exists. A recorder needs little time, but soon: of a machine with a dozen busy
/// threads on each processor it would otherwise get a twelfth, and less is not enough to empty the rings before they are full.
#[derive(Debug)]
pub struct Priority {
    before: libc::c_int,
    /// It is that of this thread.
    thread: PhantomData<*const ()>,
}

impl Priority {
    /// Ten times the weight of others and more, so that it runs as soon as it wakes.
    const NICE: libc::c_int = -15;

    /// Raises that of this thread; `None` where that isn't allowed, is done already, or the user wants plumb to be nice.
    pub fn raise() -> Option<Self> {
        // SAFETY: no pointers; 0 is the calling thread. This can't fail for it, so that -1 is a priority.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let is_raised = (Self::NICE + 1..=0).contains(&before) && set_nice(Self::NICE);
        is_raised.then_some(Self { before, thread: PhantomData })
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        // To go back is always allowed.
        set_nice(self.before);
    }
}

/// Sets the priority of this thread; whether that was allowed.
fn set_nice(nice: libc::c_int) -> bool {
    // SAFETY: no pointers. Linux takes 0 for the calling thread, not its process (setpriority(2), "C library/kernel
    // differences").
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

/// What all threads of this process have used so far.
pub fn own_cpu_time() -> CpuTime {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live rusage; zeroed is valid should the call fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    of_rusage(&usage)
}

/// What the kernel accounts for a process and the descendants that it waited for (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time. The sum is exact; how it divides is guessed from ticks.
    pub cpu: CpuTime,
    /// The most memory that one of them had resident, in bytes.
    pub max_rss_bytes: u64,
    /// Page faults without and with a wait for the disk.
    pub faults: [u64; 2],
    /// How often they waited for something, and were made to wait by others.
    pub switches: [u64; 2],
    /// Blocks of 512 bytes read from and written to disks.
    pub blocks: [u64; 2],
}

impl Usage {
    /// What a `struct rusage` says.
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

/// The processor time in a `struct rusage`.
pub fn of_rusage(usage: &libc::rusage) -> CpuTime {
    let time =
        |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    CpuTime { user: time(usage.ru_utime), system: time(usage.ru_stime) }
}

/// Ticks of /proc/PID/stat in a second.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes no pointer.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0).unwrap_or(100)
}

/// Allows as many open files as the hard limit does: an event for each thread and processor takes many.
pub fn raise_file_limit() {
    if let Ok(mut files) = limit(libc::RLIMIT_NOFILE) {
        files.rlim_cur = files.rlim_max;
        // SAFETY: the pointer is to a live, initialised rlimit.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &files) };
    }
}

fn limit(which: libc::__rlimit_resource_t) -> io::Result<libc::rlimit> {
    let mut limit = MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the pointer is to a live rlimit, which is filled in or stays zero.
    let (result, limit) = unsafe { (libc::getrlimit(which, limit.as_mut_ptr()), limit.assume_init()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(limit) }
}

/// Size of a memory page in bytes.
pub fn page_size() -> usize {
    // SAFETY: takes no pointer.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> libc::c_int {
        // SAFETY: no pointers; 0 is the calling thread.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn a_raised_priority_is_the_old_one_afterwards() {
        // A thread of its own: others must not see it.
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
            // Not allowed to this user, or plumb is to be nice.
            (now, false, _) => assert_eq!(now, before),
        }
    }

    #[test]
    fn who_is_to_be_nice_stays_nice() {
        let after = std::thread::spawn(|| {
            be_nice();
            let _raised = Priority::raise();
            nice()
        });
        assert_eq!(after.join().expect("it ends"), 19);
    }
}
