//! One registered thread: its timer, its queue, and the state of its signal handler.
//!
//! Invariant: `inside` is accessed only by the thread's own signal handler, which does not interrupt itself. Everything else is atomic, or locked and
//! never accessed by the handler. A new view of the program's code is passed in through `next`; the one that it replaces is passed out through
//! `retired`, because a handler cannot free memory.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_unwind::{Avma, Cache, End, Memory, Method, ReadError, Registers, Walked, walk};

use crate::objects::Objects;
use crate::ring::Ring;
use crate::timer::Timer;
use crate::{Error, Options};

/// Capacity of a thread's cache, in return addresses, as a power of two: 74 KB.
const CACHE_BITS: u32 = 12;

/// Stack space that must be free for unwinding, which takes less than half of this.
const ROOM: u64 = 16 << 10;

/// The program's code as seen by one thread, with a cache of unwind results.
pub(crate) struct View {
    objects: Arc<Objects>,
    cache: Cache,
}

impl View {
    pub fn new(objects: Arc<Objects>) -> Box<View> {
        Box::new(View { objects, cache: Cache::fixed(CACHE_BITS) })
    }
}

/// State that only the signal handler accesses.
struct Inside {
    view: Box<View>,
    walked: Vec<Walked>,
    /// The lowest stack address that is known to be mapped.
    lowest: u64,
}

/// A registered thread.
pub(crate) struct Thread {
    pub tid: i32,
    pub ring: Ring,
    /// Signals received, samples that did not fit, and ticks of the CPU's time stamp counter spent on them.
    pub signals: AtomicU64,
    pub dropped: AtomicU64,
    pub ticks: AtomicU64,
    /// Sampling of this thread has stopped.
    pub ended: AtomicBool,
    timer: Mutex<Option<Timer>>,
    stack: Range<u64>,
    max_frames: usize,
    inside: UnsafeCell<Inside>,
    next: AtomicPtr<View>,
    retired: AtomicPtr<View>,
}

// SAFETY: `inside` is only accessed by the handler of one thread, see above; all else may be shared.
unsafe impl Sync for Thread {}
// SAFETY: nothing in it depends on the thread it is on; it is freed after its thread has let go of it.
unsafe impl Send for Thread {}

impl Thread {
    /// The calling thread, without a timer yet.
    pub fn current(options: &Options, objects: Arc<Objects>) -> Result<Thread, Error> {
        let stack = own_stack()?;
        let here = 0_u8;
        let max_frames = options.max_frames.clamp(1, 4096);
        let inside = Inside {
            view: View::new(objects),
            walked: Vec::with_capacity(max_frames),
            lowest: &raw const here as u64,
        };
        Ok(Thread {
            // SAFETY: takes no argument and cannot fail.
            tid: unsafe { libc::gettid() },
            ring: Ring::new(options.ring_words),
            signals: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            timer: Mutex::new(None),
            stack,
            max_frames,
            inside: UnsafeCell::new(inside),
            next: AtomicPtr::new(ptr::null_mut()),
            retired: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Sets the timer, which interrupts the thread from now on.
    pub fn set_timer(&self, timer: Timer) {
        *self.timer.lock().unwrap_or_else(PoisonError::into_inner) = Some(timer);
    }

    /// Stops the timer. `is_own_process` is `false` in a forked child process: the timer belongs to the parent and is only dropped.
    pub fn end(&self, is_own_process: bool) {
        let timer = self.timer.lock().unwrap_or_else(PoisonError::into_inner).take();
        match timer {
            Some(timer) if is_own_process => timer.stop(),
            timer => drop(timer),
        }
        self.ended.store(true, Ordering::Release);
    }

    /// Passes a new view of the code to the thread, which uses it from its next sample on. For one caller at a time.
    pub fn offer(&self, view: Box<View>) {
        free(self.next.swap(Box::into_raw(view), Ordering::AcqRel));
        free(self.retired.swap(ptr::null_mut(), Ordering::AcqRel));
    }

    /// Takes a sample. Called by the thread's signal handler.
    ///
    /// # Safety
    /// Only on the thread itself, and not reentrantly; `registers` are those of the interrupted code, and `other` is memory of another stack that it
    /// may be on (sigaltstack(2)).
    pub unsafe fn sample(&self, registers: &Registers, other: Range<u64>, weight: u32) {
        // SAFETY: the caller guarantees that this is not reentered, and nothing else uses `inside`.
        let inside = unsafe { &mut *self.inside.get() };
        self.change_view(inside);
        let sp = registers.sp().saturating_sub(128);
        let on_own = self.stack.contains(&sp);
        if on_own {
            inside.lowest = inside.lowest.min(sp);
        }
        let own = if on_own { sp } else { inside.lowest }..self.stack.end;
        let other = if other.contains(&sp) { other } else { 0..0 };
        let here = &raw const sp as u64;
        let bottom = if other.contains(&here) { other.start } else { self.stack.start };
        let end = if here.saturating_sub(bottom) < ROOM {
            only_leaf(registers, &mut inside.walked)
        } else {
            let View { objects, cache } = &mut *inside.view;
            let mut memory = Stacks { own, other };
            walk(&**objects, &mut memory, cache, registers, self.max_frames, &mut inside.walked)
        };
        self.count(&self.signals);
        if !self.ring.push(&inside.walked, end, weight) {
            self.count(&self.dropped);
        }
    }

    fn change_view(&self, inside: &mut Inside) {
        if self.next.load(Ordering::Relaxed).is_null() || !self.retired.load(Ordering::Relaxed).is_null() {
            return;
        }
        let next = self.next.swap(ptr::null_mut(), Ordering::AcqRel);
        if !next.is_null() {
            // SAFETY: the pointer comes from `Box::into_raw` in `offer`, and the swap has made it ours alone.
            let old = std::mem::replace(&mut inside.view, unsafe { Box::from_raw(next) });
            self.retired.store(Box::into_raw(old), Ordering::Release);
        }
    }

    /// Increments a counter that only this thread writes.
    fn count(&self, counter: &AtomicU64) {
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        free(*self.next.get_mut());
        free(*self.retired.get_mut());
    }
}

/// A stack of only the program counter, for a thread without enough stack space to unwind.
fn only_leaf(registers: &Registers, walked: &mut Vec<Walked>) -> End {
    walked.clear();
    walked.push(Walked { pc: Avma(registers.ip()), is_return: false, found: Method::Sampled, slot: Avma(0) });
    End::StackUnreadable
}

fn free(view: *mut View) {
    if !view.is_null() {
        // SAFETY: all views in the two slots come from `Box::into_raw`, and taking one out has made it ours.
        drop(unsafe { Box::from_raw(view) });
    }
}

/// The memory that the unwinder may read: the thread's stack from its stack pointer on, and a signal stack.
struct Stacks {
    own: Range<u64>,
    other: Range<u64>,
}

impl Memory for Stacks {
    #[inline]
    fn read_u64(&mut self, at: Avma) -> Result<u64, ReadError> {
        let inside = |range: &Range<u64>| at.0 >= range.start && at.0 < range.end && range.end - at.0 >= 8;
        if inside(&self.own) || inside(&self.other) {
            // SAFETY: both ranges are mapped as long as the thread lives, and all eight bytes are in one of them. Their contents may be anything;
            // they are only used as a number here.
            return Ok(unsafe { ptr::read_unaligned(at.0 as *const u64) });
        }
        Err(ReadError::Unreadable)
    }
}

/// Address range of the calling thread's stack.
fn own_stack() -> Result<Range<u64>, Error> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised by the first call, used by the others if it succeeds, and then destroyed.
    let failed = unsafe {
        let failed = libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr());
        if failed == 0 {
            libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
        failed
    };
    if failed != 0 {
        let error = std::io::Error::from_raw_os_error(failed);
        return Err(Error::System { what: "pthread_getattr_np", error });
    }
    let start = start as u64;
    Ok(start..start.saturating_add(size as u64))
}
