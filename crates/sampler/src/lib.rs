//! Samples the threads of its own process: the stack of each registered thread, up to a thousand times per second of its CPU time, from a timer
//! signal. For programs that profile themselves where no separate profiler can run.
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
//! - A thread is sampled while it uses CPU time; a waiting thread is not interrupted.
//! - Stacks are unwound in the signal handler with call-frame information, so frame pointers are not needed. The
//!   handler takes no lock, does not allocate and leaves `errno` unchanged.
//! - Call [`refresh`] after dlopen(3) and dlclose(3): until then a stack ends at code that was loaded since.
//! - A child process after fork(2) is not sampled until it calls [`start`] itself.
//! - The shared library stays loaded until the process ends.
//!
//! Does not resolve names other than those of dynamic symbols, and reads no files. `include/plumb_sampler.h` is the same API for C.

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

/// Sampling options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples per second of a thread's CPU time, 1 to 10,000.
    pub frequency_hz: u32,
    /// The signal to use; `None`: the highest real-time signal without a handler. If the given signal has a handler, that still receives the signals
    /// of other sources; in this case register threads before anything sends them the signal.
    pub signal: Option<i32>,
    /// The clock that interrupts threads.
    pub clock: Clock,
    /// Size of each thread's queue in 8-byte words: a sample takes one word, plus one per frame.
    pub ring_words: usize,
    /// Most frames of a stack, at most 4096.
    pub max_frames: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { frequency_hz: 1000, signal: None, clock: Clock::Best, ring_words: 64 << 10, max_frames: 256 }
    }
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Signals received, each of them a sample.
    pub signals: u64,
    /// Samples lost because a queue was full: drain more often, or make queues larger.
    pub dropped: u64,
    /// Time spent in the signal handler, in ticks of the CPU's time stamp counter.
    pub ticks: u64,
    /// Currently registered threads.
    pub threads: usize,
}

impl Statistics {
    fn add(&mut self, thread: &thread::Thread) {
        self.signals += thread.signals.load(Ordering::Relaxed);
        self.dropped += thread.dropped.load(Ordering::Relaxed);
        self.ticks += thread.ticks.load(Ordering::Relaxed);
    }
}

/// Starts sampling. A thread is sampled once it has registered.
pub fn start(options: Options) -> Result<(), Error> {
    let mut running = sampler::running();
    if running.is_some() {
        return Err(Error::AlreadyStarted);
    }
    *running = Some(Running::start(options)?);
    Ok(())
}

/// Samples the calling thread from now on, until it ends, calls [`unregister_thread`], or any thread calls [`stop`]. Unblocks the signal in this
/// thread.
pub fn register_thread() -> Result<(), Error> {
    sampler::register_thread()
}

/// Stops sampling the calling thread. Its samples stay queued until they are drained.
pub fn unregister_thread() {
    sampler::unregister_thread();
}

/// Updates the map of loaded code. Call it after dlopen(3), dlclose(3), and after a JIT compiler has written code.
pub fn refresh() -> Result<(), Error> {
    sampler::running().as_mut().ok_or(Error::NotStarted)?.refresh();
    Ok(())
}

/// Passes all queued samples to `each`, with the ids of their threads. Returns their number. `each` must not call this crate.
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
        // The thread ended before the queue was found empty, so no sample can follow.
        let is_gone = thread.ended.load(Ordering::Acquire) && thread.ring.is_empty();
        if is_gone {
            past.add(thread);
        }
        !is_gone
    });
    Ok(count)
}

/// Totals since the start.
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

/// Stops sampling: no thread is interrupted any more, and samples that were not drained are lost.
pub fn stop() -> Result<(), Error> {
    sampler::running().take().ok_or(Error::NotStarted)?.end();
    Ok(())
}
