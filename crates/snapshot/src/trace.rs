//! Threads of other processes, stopped briefly by ptrace(2) so that their registers can be read.
//!
//! A thread is seized and interrupted, which sends no signal. It continues when the [`Traced`] is dropped; and since the
//! kernel releases all tracees of a thread that ends, it also continues if this process is killed, even by SIGKILL. A process
//! stopped by a signal stays stopped.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use plumb_unwind::{LinuxRegisters, Native, StoppedRegisters};

/// A thread under this process' control. Only the thread that took control can use it.
pub(crate) struct Traced {
    tid: i32,
    stop: Stop,
    not_send: PhantomData<*const ()>,
}

/// State of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Running, or in a sleep that the interrupt did not end.
    NotYet,
    /// Stopped; with a signal that has to be passed on, or 0.
    Held(i32),
    /// Ended.
    Gone,
}

impl Traced {
    /// Takes control of a thread, which keeps running. `EPERM`: it may not be traced, is traced already, or has ended;
    /// `ESRCH`: it does not exist.
    pub fn seize(tid: u32) -> io::Result<Self> {
        let tid = i32::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: SEIZE takes its options, none here, by value.
        check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0, 0) })?;
        Ok(Self { tid, stop: Stop::NotYet, not_send: PhantomData })
    }

    /// Asks the thread to stop as soon as possible.
    pub fn interrupt(&self) -> io::Result<()> {
        // SAFETY: INTERRUPT takes no pointer.
        check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, self.tid, 0, 0) })
    }

    /// Waits until the thread has stopped or ended, at most until `deadline`: a thread in uninterruptible
    /// sleep does neither.
    pub fn wait(&mut self, deadline: Instant) {
        let mut tries = 0_u32;
        loop {
            self.look();
            match self.stop {
                Stop::Held(_) | Stop::Gone => return,
                Stop::NotYet if Instant::now() >= deadline => return,
                // Most threads stop within microseconds.
                Stop::NotYet if tries < 50 => std::thread::yield_now(),
                Stop::NotYet => std::thread::sleep(Duration::from_micros(100)),
            }
            tries += 1;
        }
    }

    fn look(&mut self) {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        match unsafe { libc::waitpid(self.tid, &mut status, libc::__WALL | libc::WNOHANG) } {
            0 => {}
            -1 => self.stop = Stop::Gone,
            _ if !libc::WIFSTOPPED(status) => self.stop = Stop::Gone,
            // The requested stop, or a group stop: neither has a signal to pass on.
            _ if status >> 16 == libc::PTRACE_EVENT_STOP => self.stop = Stop::Held(0),
            _ if status >> 16 != 0 => self.stop = Stop::Held(0),
            // A signal came first. It is delivered when the thread is released.
            _ => self.stop = Stop::Held(libc::WSTOPSIG(status)),
        }
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.stop, Stop::Held(_))
    }

    /// Registers of a stopped thread. `None`: it runs 32-bit code, or is not stopped.
    pub fn held(&self) -> Option<StoppedRegisters<Native>> {
        Native::stopped(|set, words| self.register_set(set, words))
    }

    /// Fills the words with a register set, and returns its size in bytes; 0 if there is none.
    fn register_set(&self, set: i32, words: &mut [u64]) -> usize {
        let mut place = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
        // SAFETY: GETREGSET writes at most `iov_len` bytes to `words`, for which any bits are valid, and to `place` how many.
        let read = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, self.tid, set, &raw mut place) };
        if check(read).is_ok() { place.iov_len } else { 0 }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let Stop::Held(signal) = self.stop else { return };
        // SAFETY: DETACH takes the signal by value. It fails only for a thread that has been killed since.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.tid, 0, libc::c_long::from(signal)) };
    }
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use plumb_fixtures::{Requirement, needs};

    use super::*;

    /// Ended with the test.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }

    /// The kernel's text files have the place where a thread waits, too.
    #[test]
    fn a_stopped_thread_is_where_it_waits() {
        if !needs(Requirement::Ptrace) {
            return;
        }
        let child = Sleeper(Command::new("sleep").arg("60").spawn().expect("coreutils are there"));
        let pid = child.0.id();
        let deadline = Instant::now() + Duration::from_secs(10);
        // Before it sleeps it waits for its files.
        let at = loop {
            assert!(Instant::now() < deadline, "it never sleeps");
            match plumb_process::waits_at(pid, pid) {
                Some(at) if plumb_process::state(pid, pid) == Some('S') => break at,
                _ => std::thread::sleep(Duration::from_millis(50)),
            }
        };
        let mut traced = Traced::seize(pid).expect("it is allowed");
        traced.interrupt().expect("it is ours");
        traced.wait(deadline);
        let held = traced.held().expect("it runs code of this machine");
        assert_eq!((held.registers.ip(), held.registers.sp()), (at.pc, at.sp));
        let arguments =
            Native::ARGUMENTS.map(|register| held.registers.get(register).expect("all are known"));
        assert_eq!((Some(arguments), held.in_system_call), (at.arguments, true));
        assert_ne!(held.thread_pointer, 0, "the C library's");
    }
}
