//! The single sampler of a process: its registered threads, and their view of the code.
//!
//! A forked child process starts without one: the parent's state is abandoned, including its locks, which may have been held.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::handler;
use crate::objects::Objects;
use crate::thread::{Thread, View};
use crate::timer::Timer;
use crate::{Error, Options};

/// Sampler state of one process.
struct Process {
    pid: u32,
    running: Mutex<Option<Running>>,
}

/// Sampling in progress.
pub(crate) struct Running {
    pub options: Options,
    pub signal: i32,
    pub objects: Arc<Objects>,
    pub threads: Vec<Arc<Thread>>,
    /// Totals of threads that have ended.
    pub past: crate::Statistics,
}

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

/// Returns the state of this process, creating it if needed.
fn process() -> &'static Process {
    let pid = std::process::id();
    loop {
        let known = PROCESS.load(Ordering::Acquire);
        // SAFETY: the stored value is never freed.
        if let Some(process) = unsafe { known.as_ref() }
            && process.pid == pid
        {
            return process;
        }
        let new = Box::into_raw(Box::new(Process { pid, running: Mutex::new(None) }));
        if PROCESS.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it was created here and has not been shared.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// Locks the sampling state of this process.
pub(crate) fn running() -> MutexGuard<'static, Option<Running>> {
    process().running.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    /// Chooses a signal and installs the handler.
    pub fn start(options: Options) -> Result<Running, Error> {
        let signal = match options.signal {
            Some(signal) => signal,
            // Search from the end, because the first signals are the most likely to be used.
            None => (libc::SIGRTMIN()..=libc::SIGRTMAX())
                .rev()
                .find(|&signal| handler::is_free(signal))
                .ok_or(Error::NoSignal)?,
        };
        handler::install(signal)?;
        let objects = Arc::new(Objects::look(None));
        Ok(Running { options, signal, objects, threads: Vec::new(), past: crate::Statistics::default() })
    }

    /// Takes a new snapshot of the code and passes it to all threads.
    pub fn refresh(&mut self) {
        self.objects = Arc::new(Objects::look(Some(&self.objects)));
        for thread in self.threads.iter().filter(|thread| !thread.ended.load(Ordering::Acquire)) {
            thread.offer(View::new(self.objects.clone()));
        }
    }

    /// Starts sampling the calling thread.
    fn register(&mut self) -> Result<Arc<Thread>, Error> {
        if Objects::changes_now() != self.objects.changes() {
            self.refresh();
        }
        let thread = Arc::new(Thread::current(&self.options, self.objects.clone())?);
        handler::set_current(Arc::as_ptr(&thread));
        handler::unblock(self.signal);
        let period_ns = 1_000_000_000 / u64::from(self.options.frequency_hz.clamp(1, 10_000));
        match Timer::start(self.options.clock, self.signal, period_ns) {
            Ok(timer) => thread.set_timer(timer),
            Err(error) => {
                handler::set_current(ptr::null());
                return Err(error);
            }
        }
        self.threads.push(thread.clone());
        Ok(thread)
    }

    /// Stops all timers and restores the signal's handler.
    pub fn end(self) {
        self.threads.iter().for_each(|thread| thread.end(true));
        handler::uninstall(self.signal);
    }
}

/// Keeps a registered thread's memory alive, in that thread's local storage, until the thread ends or is unregistered.
struct Registration {
    pid: u32,
    thread: Arc<Thread>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Detach the handler first; only then may the memory be freed.
        handler::set_current(ptr::null());
        self.thread.end(self.pid == std::process::id());
    }
}

thread_local! {
    static REGISTRATION: RefCell<Option<Registration>> = const { RefCell::new(None) };
}

/// Registers the calling thread.
pub(crate) fn register_thread() -> Result<(), Error> {
    let pid = std::process::id();
    REGISTRATION.with_borrow_mut(|registration| {
        let mut running = running();
        let running = running.as_mut().ok_or(Error::NotStarted)?;
        let is_known = |old: &Registration| old.pid == pid && !old.thread.ended.load(Ordering::Acquire);
        if registration.as_ref().is_some_and(is_known) {
            return Err(Error::AlreadyRegistered);
        }
        *registration = None;
        *registration = Some(Registration { pid, thread: running.register()? });
        Ok(())
    })
}

/// Stops sampling the calling thread.
pub(crate) fn unregister_thread() {
    REGISTRATION.with_borrow_mut(|registration| *registration = None);
}
