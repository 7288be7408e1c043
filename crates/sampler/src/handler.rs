//! The signal handler, and the registered thread that it runs on.
//!
//! Invariant: async-signal-safe (signal-safety(7)): no locks, no allocation, no libc calls, `errno` unchanged. A signal that is not from one of the
//! sampler's timers is passed to the handler that was installed before.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, compiler_fence};

use plumb_unwind::Registers;

use crate::Error;
use crate::thread::Thread;

thread_local! {
    /// The current thread, if it is registered. Has no destructor, so a signal handler can access it at any time.
    static CURRENT: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

/// The previous action of the signal. Allocated on the heap and never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Signals on threads that are not, or no longer, registered.
pub(crate) static STRAY: AtomicU64 = AtomicU64::new(0);

/// Sets the registered thread that runs here, or null. The thread must live until this is called again.
pub(crate) fn set_current(thread: *const Thread) {
    // The handler runs on this very thread, so only the compiler could reorder these accesses.
    compiler_fence(Ordering::SeqCst);
    CURRENT.set(thread);
    compiler_fence(Ordering::SeqCst);
}

/// The beginning of the kernel's `siginfo_t` (include/uapi/asm-generic/siginfo.h), as far as it is used.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    /// `si_band` for perf events; timer id and overrun count for timers.
    first: [i32; 2],
}

/// `si_code` of a descriptor with input, which is how the overflow of a perf event is signalled.
const POLL_IN: i32 = 1;
/// `si_code` of a timer.
const SI_TIMER: i32 = -2;

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let start = ticks();
    // SAFETY: the kernel passes a siginfo of at least this size.
    let told = unsafe { &*info.cast::<Info>() };
    if !matches!(told.code, POLL_IN | SI_TIMER) {
        return chain(signal, info, context);
    }
    let thread = CURRENT.get();
    if thread.is_null() {
        STRAY.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let weight = if told.code == SI_TIMER { told.first[1].max(0).cast_unsigned() + 1 } else { 1 };
    // SAFETY: the caller of `set_current` guarantees that the thread lives; the kernel passes a valid context; the signal is blocked while it is
    // handled, so this does not interrupt itself.
    unsafe {
        let thread = &*thread;
        let context = &*context.cast::<libc::ucontext_t>();
        thread.sample(&registers(context), signal_stack(context), weight);
        let spent = thread.ticks.load(Ordering::Relaxed).wrapping_add(ticks().wrapping_sub(start));
        thread.ticks.store(spent, Ordering::Relaxed);
    }
}

/// Passes a signal of another source to the handler that would have received it without the sampler.
#[cold]
fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.load(Ordering::Acquire);
    if before.is_null() {
        return;
    }
    // SAFETY: the stored action is never freed.
    let before = unsafe { &*before };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {}
        // SAFETY: the program has declared that this is a handler, and by its flags of which kind.
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                mem::transmute(handler);
            handler(signal, info, context);
        },
        // SAFETY: as above.
        handler => unsafe {
            let handler: extern "C" fn(i32) = mem::transmute(handler);
            handler(signal);
        },
    }
}

/// The thread's alternate signal stack (sigaltstack(2)).
fn signal_stack(context: &libc::ucontext_t) -> Range<u64> {
    let stack = &context.uc_stack;
    let start = stack.ss_sp as u64;
    if stack.ss_flags & libc::SS_DISABLE != 0 {
        0..0
    } else {
        start..start.saturating_add(stack.ss_size as u64)
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    // By DWARF number (System V ABI for x86_64, figure 3.36).
    const ORDER: [i32; 16] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    let value = |register: i32| context.uc_mcontext.gregs[register as usize].cast_unsigned();
    let mut registers = Registers::new(value(libc::REG_RIP), value(libc::REG_RSP));
    (0..).zip(ORDER).for_each(|(number, register)| registers.set(number, value(register)));
    registers
}

/// The CPU's time stamp counter.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86_64 CPU has the counter; the instruction takes no pointer.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Installs the handler for `signal`.
pub(crate) fn install(signal: i32) -> Result<(), Error> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroes are valid for the plain structure `sigaction`; both pointers are to live values.
    let (failed, before) = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        // Do not use the thread's alternate signal stack: programs size it for handlers that need next to nothing.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        (libc::sigaction(signal, &action, before.as_mut_ptr()) != 0, before.assume_init())
    };
    if failed {
        return Err(Error::last("sigaction"));
    }
    if before.sa_sigaction != handle as *const () as usize {
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
    }
    Ok(())
}

/// Restores the signal's previous handler. If there was none, the sampler's handler stays, because the default action of a pending signal would end
/// the process.
pub(crate) fn uninstall(signal: i32) {
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: the stored action is never freed and was returned by sigaction(2).
    unsafe {
        if !before.is_null() && (*before).sa_sigaction != libc::SIG_DFL {
            libc::sigaction(signal, before, ptr::null_mut());
        }
    }
}

/// Whether a signal has no handler other than the sampler's.
pub(crate) fn is_free(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only queries the action; zeroes are valid for the structure.
    let now = unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_DFL || now.sa_sigaction == handle as *const () as usize
}

/// Unblocks the signal for the calling thread. If too many signals are queued for a thread, the kernel sends SIGIO instead, which would end the
/// process, so SIGIO is ignored unless the program has a handler for it.
pub(crate) fn unblock(signal: i32) {
    // SAFETY: the set is initialised by sigemptyset before it is used; SIGIO is changed only if the program does not use it.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        if is_free(libc::SIGIO) {
            libc::signal(libc::SIGIO, libc::SIG_IGN);
        }
    }
}
