//! Threads of other processes, stopped for a moment by ptrace(2) so that their registers can be read.
//!
//! A thread is seized and interrupted, which sends no signal. It goes on when the [`Traced`] is dropped; and since the
//! kernel lets go of all tracees of a thread that ends, whatever ends us, SIGKILL included, lets it go on too. A process
//! that a signal has stopped stays stopped.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use plumb_unwind::Registers;

/// A thread under our control. Only the thread that took control can use it.
pub(crate) struct Traced {
    tid: i32,
    stop: Stop,
    not_send: PhantomData<*const ()>,
}

/// Where a traced thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// It runs, or sleeps without being woken by us.
    NotYet,
    /// It is stopped; a signal that has to be passed on, or 0.
    Held(i32),
    /// It has ended.
    Gone,
}

/// What a stopped thread's registers say.
pub(crate) struct Held {
    /// By DWARF number.
    pub registers: Registers,
    /// Where its control block is (the base of its segment FS).
    pub thread_pointer: u64,
    /// It is in a system call, whose number and arguments are in the registers still.
    pub in_system_call: bool,
}

impl Traced {
    /// Takes control of a thread, which runs on. `EPERM`: it may not be traced, or is by another, or has ended;
    /// `ESRCH`: there is none.
    pub fn seize(tid: u32) -> io::Result<Self> {
        let tid = i32::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: SEIZE takes its options, none here, by value.
        check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0, 0) })?;
        Ok(Self { tid, stop: Stop::NotYet, not_send: PhantomData })
    }

    /// Has the thread stop as soon as it can.
    pub fn interrupt(&self) -> io::Result<()> {
        // SAFETY: INTERRUPT takes no pointer.
        check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, self.tid, 0, 0) })
    }

    /// Waits until the thread has stopped or ended, at most until `deadline`: a thread that waits uninterruptibly for a
    /// disk does neither.
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
            // Our own stop, or the group's: nothing to pass on.
            _ if status >> 16 == libc::PTRACE_EVENT_STOP => self.stop = Stop::Held(0),
            _ if status >> 16 != 0 => self.stop = Stop::Held(0),
            // A signal came first. It is delivered when the thread is let go.
            _ => self.stop = Stop::Held(libc::WSTOPSIG(status)),
        }
    }

    /// Whether it is stopped.
    pub fn is_stopped(&self) -> bool {
        matches!(self.stop, Stop::Held(_))
    }

    /// Registers of a stopped thread. `None`: it runs 32-bit code, or is not stopped.
    pub fn held(&self) -> Option<Held> {
        let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
        let mut place = libc::iovec {
            iov_base: registers.as_mut_ptr().cast(),
            iov_len: size_of::<libc::user_regs_struct>(),
        };
        // SAFETY: GETREGSET writes at most `iov_len` bytes to `registers`, which outlives the call, and to `place` how
        // many; the structure is plain integers, for which zeroes are valid.
        let r = unsafe {
            check(libc::ptrace(libc::PTRACE_GETREGSET, self.tid, libc::NT_PRSTATUS, &raw mut place)).ok()?;
            registers.assume_init()
        };
        const USER_CODE_64: u64 = 0x33;
        if place.iov_len < size_of::<libc::user_regs_struct>() || r.cs != USER_CODE_64 {
            return None;
        }
        Some(Held {
            registers: by_dwarf_number(&r),
            thread_pointer: r.fs_base,
            in_system_call: r.orig_rax.cast_signed() >= 0,
        })
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let Stop::Held(signal) = self.stop else { return };
        // SAFETY: DETACH takes the signal by value. It fails only for a thread that was killed meanwhile.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.tid, 0, libc::c_long::from(signal)) };
    }
}

/// System V ABI for x86_64, figure 3.36.
fn by_dwarf_number(r: &libc::user_regs_struct) -> Registers {
    let values = [
        r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
        r.r14, r.r15,
    ];
    let mut registers = Registers::new(r.rip, r.rsp);
    (0..).zip(values).for_each(|(number, value)| registers.set(number, value));
    registers
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
