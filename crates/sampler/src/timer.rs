//! Timers that interrupt a thread after a period of its CPU time.
//!
//! A perf event of the thread (`task-clock`) fires at any rate and only while the thread runs. Where the kernel allows none, a POSIX timer on the
//! thread's CPU time is used, which the kernel checks only in its scheduler tick: with 250 ticks a second there are 250 signals, each of which
//! carries the number of periods that it represents.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;

use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_TASK_CLOCK, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr,
};
use perf_event_open_sys::ioctls;

use crate::Error;

/// The clock that interrupts threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// A perf event, or a POSIX timer if perf events are not available.
    #[default]
    Best,
    /// A perf event (perf_event_open(2)): precise.
    Perf,
    /// A POSIX timer (timer_create(2), CLOCK_THREAD_CPUTIME_ID): as precise as the kernel's tick.
    Posix,
}

/// The timer of one thread. Dropping it stops it in the process that created it; in a forked child process the parent's timer is not affected.
#[derive(Debug)]
pub(crate) enum Timer {
    Perf(File),
    Posix(PosixTimer),
}

/// Id of a POSIX timer.
#[derive(Debug)]
pub(crate) struct PosixTimer(libc::timer_t);

// SAFETY: the id belongs to the process, and any thread may use it.
unsafe impl Send for PosixTimer {}

impl Timer {
    /// Sends `signal` to the calling thread after each `period_ns` of its CPU time.
    pub fn start(clock: Clock, signal: i32, period_ns: u64) -> Result<Timer, Error> {
        match clock {
            Clock::Perf => perf(signal, period_ns),
            Clock::Posix => posix(signal, period_ns),
            Clock::Best => perf(signal, period_ns).or_else(|_| posix(signal, period_ns)),
        }
    }

    /// Stops the timer. Pending signals are still delivered.
    pub fn stop(self) {
        match self {
            // SAFETY: takes no pointer. A forked child may hold a copy of the descriptor, so closing is not enough.
            Timer::Perf(file) => drop(unsafe { ioctls::DISABLE(file.as_raw_fd(), 0) }),
            // SAFETY: the timer is ours and not used again.
            Timer::Posix(PosixTimer(timer)) => drop(unsafe { libc::timer_delete(timer) }),
        }
    }
}

fn perf(signal: i32, period_ns: u64) -> Result<Timer, Error> {
    // Count kernel time too, if that is allowed: the signal is then delivered on the return to user code.
    let file = open(period_ns, false).or_else(|_| open(period_ns, true));
    let file = file.map_err(|error| Error::System { what: "perf_event_open", error })?;
    let fd = file.as_raw_fd();
    // SAFETY: takes no pointer.
    let tid = unsafe { libc::gettid() };
    // From asm-generic/fcntl.h; glibc defines them under _GNU_SOURCE, the libc crate does not.
    #[repr(C)]
    struct Owner {
        kind: i32,
        pid: libc::pid_t,
    }
    const F_SETSIG: i32 = 10;
    const F_SETOWN_EX: i32 = 15;
    const F_OWNER_TID: i32 = 0;
    let owner = Owner { kind: F_OWNER_TID, pid: tid };
    // SAFETY: the owner is a live `struct f_owner_ex`, which the kernel reads; the other calls take numbers.
    let results = unsafe {
        [
            libc::fcntl(fd, F_SETOWN_EX, &raw const owner),
            libc::fcntl(fd, F_SETSIG, signal),
            libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK),
            ioctls::ENABLE(fd, 0),
        ]
    };
    if results.contains(&-1) { Err(Error::last("a signal for a perf event")) } else { Ok(Timer::Perf(file)) }
}

fn open(period_ns: u64, user_only: bool) -> io::Result<File> {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>() as u32,
        config: PERF_COUNT_SW_TASK_CLOCK.into(),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = period_ns;
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.set_disabled(1);
    attr.set_exclude_kernel(user_only.into());
    attr.set_exclude_hv(1);
    // SAFETY: `attr` is live and its size field is its size. This thread (0), on any CPU (-1), no group (-1).
    let fd =
        unsafe { perf_event_open_sys::perf_event_open(&mut attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for us, and nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn posix(signal: i32, period_ns: u64) -> Result<Timer, Error> {
    let mut timer = ptr::null_mut();
    let period = libc::timespec {
        tv_sec: (period_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (period_ns % 1_000_000_000) as libc::c_long,
    };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: zeroes are valid for the plain structure `sigevent`; all pointers are to live values; the timer is used only after it was created.
    let failed = unsafe {
        let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = libc::gettid();
        libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) != 0
            || libc::timer_settime(timer, 0, &times, ptr::null_mut()) != 0
    };
    if failed { Err(Error::last("timer_create")) } else { Ok(Timer::Posix(PosixTimer(timer))) }
}
