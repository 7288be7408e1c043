//! The signal handler, and which thread it is on.
//!
//! Invariant: async-signal-safe (signal-safety(7)): no lock, no allocation, no call into libc, `errno` untouched. A
//! signal that is not from one of our timers goes to the handler that was there before.

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
    /// The registered thread that this is. Has no destructor and so needs nothing to be looked at.
    static CURRENT: Cell<*const Thread> = const { Cell::new(ptr::null()) };
}

/// What was done with the signal before, on the heap for ever.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());
/// Signals on threads that are not registered (any more).
pub(crate) static STRAY: AtomicU64 = AtomicU64::new(0);

/// Says which registered thread this is, or none. The thread must live until this is called again.
pub(crate) fn set_current(thread: *const Thread) {
    // The handler runs on this very thread: only the compiler could mix up the order.
    compiler_fence(Ordering::SeqCst);
    CURRENT.set(thread);
    compiler_fence(Ordering::SeqCst);
}

/// The start of what the kernel hands over (`siginfo_t`, include/uapi/asm-generic/siginfo.h), as far as it is used.
#[repr(C)]
struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    /// `si_band` of perf events; timer id and overrun count of timers.
    first: [i32; 2],
}

/// `si_code` of a descriptor that has input, which is how a perf event's overflow comes.
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
    // SAFETY: `set_current` was told that the thread lives; the kernel passes a context; the signal is blocked while
    // it is handled, so this does not interrupt itself.
    unsafe {
        let thread = &*thread;
        let context = &*context.cast::<libc::ucontext_t>();
        thread.sample(&registers(context), signal_stack(context), weight);
        let spent = thread.ticks.load(Ordering::Relaxed).wrapping_add(ticks().wrapping_sub(start));
        thread.ticks.store(spent, Ordering::Relaxed);
    }
}

/// Hands a signal that is none of ours to whom it would have reached without us.
#[cold]
fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.load(Ordering::Acquire);
    if before.is_null() {
        return;
    }
    // SAFETY: what was stored is never freed.
    let before = unsafe { &*before };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {}
        // SAFETY: the program has said that this is a handler, and by its flags of which kind.
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

/// The signal stack that the thread has (sigaltstack(2)).
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

/// The processor's time stamp counter.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: every x86_64 processor has it; it takes no pointer.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Has `signal` go to the handler.
pub(crate) fn install(signal: i32) -> Result<(), Error> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroes are valid for the plain structure `sigaction`; both pointers are to live values.
    let (failed, before) = unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handle as *const () as usize;
        // Not on the signal stack that the thread may have: those are made for handlers that need next to nothing.
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

/// Gives the signal back to the handler that it had. Without one ours stays, as a signal under way would end the
/// process.
pub(crate) fn uninstall(signal: i32) {
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: what is stored is never freed and is what sigaction(2) has told.
    unsafe {
        if !before.is_null() && (*before).sa_sigaction != libc::SIG_DFL {
            libc::sigaction(signal, before, ptr::null_mut());
        }
    }
}

/// What is done with a signal now.
pub(crate) fn is_free(signal: i32) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only asks; zeroes are valid for the structure.
    let now = unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_DFL || now.sa_sigaction == handle as *const () as usize
}

/// Lets the signal reach the calling thread. When too many wait for a thread the kernel sends SIGIO instead, which
/// would end the process: that is ignored unless the program has a handler for it.
pub(crate) fn unblock(signal: i32) {
    // SAFETY: the set is initialised by sigemptyset before it is used; SIGIO is only changed where nobody cares.
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
