//! Samples the threads of its own process: the stack of each registered thread, up to a thousand times for each second
//! that it runs, from a timer signal. For programs that profile themselves where no profiler can be run beside them.
//!
//! ```
//! use plumb_sampler::{Options, Stacks};
//!
//! plumb_sampler::start(Options::default())?;
//! plumb_sampler::register_thread()?;
//! let mut sum = 0_u64;
//! while plumb_sampler::statistics()?.signals < 3 {
//!     sum = (0..100_000_u64).fold(sum, |sum, n| std::hint::black_box(sum ^ n));
//! }
//! let mut stacks = Stacks::default();
//! plumb_sampler::drain(|tid, stack| stacks.add(tid, stack))?;
//! stacks.write_folded(&mut std::io::stdout())?;
//! plumb_sampler::stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - A thread is sampled while it uses processor time; one that waits is not interrupted.
//! - Stacks are unwound in the signal handler by call-frame information, so that no frame pointers are needed. The
//!   handler takes no lock, allocates nothing and leaves `errno` alone.
//! - After dlopen(3) and dlclose(3) call [`refresh`]: until then code that was loaded since ends a stack.
//! - A child after fork(2) is not sampled until it calls [`start`] itself.
//! - The shared library stays loaded until the process ends.
//!
//! Not here: names other than those of dynamic symbols, files. `include/plumb_sampler.h` is the same for C.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("sampling within a process is for Linux on x86_64");

mod c;
mod error;
mod handler;
mod objects;
mod ring;
mod sampler;
mod stacks;
mod thread;
mod timer;

pub use error::Error;
pub use plumb_unwind::End;
pub use ring::{Frame, Stack};
pub use stacks::Stacks;
pub use timer::Clock;

use std::sync::atomic::Ordering;

use sampler::Running;

/// How to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples for each second of a thread's processor time, 1 to 10,000.
    pub frequency_hz: u32,
    /// The signal to use; `None`: the highest real-time signal that has no handler. If the one given has a handler it
    /// still gets the signals that are none of ours; then register threads before anyone sends them that signal.
    pub signal: Option<i32>,
    /// What interrupts threads.
    pub clock: Clock,
    /// Words of eight bytes in each thread's queue: a sample takes one, and one for each frame.
    pub ring_words: usize,
    /// The most frames of a stack, at most 4096.
    pub max_frames: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { frequency_hz: 1000, signal: None, clock: Clock::Best, ring_words: 64 << 10, max_frames: 256 }
    }
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Signals that came, each of them a sample.
    pub signals: u64,
    /// Samples that were lost because a queue was full: drain more often, or make queues larger.
    pub dropped: u64,
    /// Time spent in the signal handler, in ticks of the processor's time stamp counter.
    pub ticks: u64,
    /// Threads that are registered now.
    pub threads: usize,
}

impl Statistics {
    fn add(&mut self, thread: &thread::Thread) {
        self.signals += thread.signals.load(Ordering::Relaxed);
        self.dropped += thread.dropped.load(Ordering::Relaxed);
        self.ticks += thread.ticks.load(Ordering::Relaxed);
    }
}

/// Begins. Threads are sampled once they have registered.
pub fn start(options: Options) -> Result<(), Error> {
    let mut running = sampler::running();
    if running.is_some() {
        return Err(Error::AlreadyStarted);
    }
    *running = Some(Running::start(options)?);
    Ok(())
}

/// Has the calling thread sampled from now on, until it ends, calls [`unregister_thread`], or someone calls [`stop`].
/// Unblocks the signal in this thread.
pub fn register_thread() -> Result<(), Error> {
    sampler::register_thread()
}

/// The calling thread is not sampled any more. What was sampled stays until it is drained.
pub fn unregister_thread() {
    sampler::unregister_thread();
}

/// Looks what code is loaded now. To be called after dlopen(3), dlclose(3), and when a compiler has written code.
pub fn refresh() -> Result<(), Error> {
    sampler::running().as_mut().ok_or(Error::NotStarted)?.refresh();
    Ok(())
}

/// Hands over all samples that are waiting, with the ids of their threads. Returns how many there were. `each` must not
/// call this crate.
pub fn drain(mut each: impl FnMut(i32, &Stack)) -> Result<u64, Error> {
    let mut running = sampler::running();
    let running = running.as_mut().ok_or(Error::NotStarted)?;
    let mut count = 0;
    for thread in &running.threads {
        while let Some(stack) = thread.ring.pop() {
            each(thread.tid, &stack);
            count += 1;
        }
    }
    let past = &mut running.past;
    running.threads.retain(|thread| {
        // Ended before it was empty, so that nothing can have come since.
        let is_gone = thread.ended.load(Ordering::Acquire) && thread.ring.is_empty();
        if is_gone {
            past.add(thread);
        }
        !is_gone
    });
    Ok(count)
}

/// What was done so far.
pub fn statistics() -> Result<Statistics, Error> {
    let running = sampler::running();
    let running = running.as_ref().ok_or(Error::NotStarted)?;
    let mut statistics = running.past;
    for thread in &running.threads {
        statistics.add(thread);
        statistics.threads += usize::from(!thread.ended.load(Ordering::Relaxed));
    }
    Ok(statistics)
}

/// Ends: no thread is interrupted any more, and samples that were not drained are gone.
pub fn stop() -> Result<(), Error> {
    sampler::running().take().ok_or(Error::NotStarted)?.end();
    Ok(())
}
